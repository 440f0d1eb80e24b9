import SystemIO

/// The identity of a connection in the event loop. A later connection may get the same index, never both.
struct ConnectionToken: Hashable, Sendable {
    let index: Int
    let generation: UInt32

    /// The form for timers and commands.
    var number: UInt64 { UInt64(generation) << 32 | UInt64(index) }

    init(index: Int, generation: UInt32) {
        self.index = index
        self.generation = generation
    }

    init(_ number: UInt64) { self.init(index: Int(number & 0xFFFF_FFFF), generation: UInt32(number >> 32)) }
}

/// The connections of an event loop.
struct ConnectionTable {
    /// A connection before and after its handover to the relay. It keeps its token.
    enum Entry {
        case vacant
        case pending(PendingConnection)
        case relayed(RelayConnection)
    }

    private var entries: [Entry] = []
    private var vacant: [Int] = []
    private var nextGeneration: UInt32 = 0

    var count: Int { entries.count }
    var indices: Range<Int> { entries.indices }

    subscript(index: Int) -> Entry {
        get { entries[index] }
        set { entries[index] = newValue }
    }

    /// The relayed connection with a token, if it has not ended.
    func relayed(_ token: ConnectionToken) -> RelayConnection? {
        guard case .relayed(let connection) = entries[token.index], connection.generation == token.generation else {
            return nil
        }
        return connection
    }

    /// The pending connection with a token, if it has not ended and is not relayed yet.
    func pending(_ token: ConnectionToken) -> PendingConnection? {
        guard case .pending(let pending) = entries[token.index], pending.token == token else { return nil }
        return pending
    }

    /// True for a relayed connection of one of these observers over one of these routes.
    ///
    /// The caller holds no reference to the connection, because its sockets close with the last one.
    func belongs(_ index: Int, to observers: Set<ObjectIdentifier>, over routes: RevokedRoutes) -> Bool {
        guard case .relayed(let connection) = entries[index] else { return false }
        return observers.contains(ObjectIdentifier(connection.observer)) && routes.contains(connection.route)
    }

    /// Replaces a connection that has both sockets by its relayed form.
    ///
    /// The caller gets no reference to it, because its sockets close with the last one.
    /// - Returns: False if a socket is missing.
    mutating func relay(
        _ pending: PendingConnection,
        _ target: RelayTarget,
        observer: any RelayObserver,
        _ pool: RelayBufferPool,
        _ now: MonotonicInstant
    ) -> Bool {
        guard let client = pending.client.take(), let socket = pending.target.take() else { return false }
        let connection = RelayConnection(
            client: client,
            target: socket,
            target,
            inspector: pending.inspector,
            observer: observer,
            generation: pending.token.generation,
            pool: pool,
            now: now
        )
        entries[pending.token.index] = .relayed(connection)
        return true
    }

    /// Stores a connection that another thread has made.
    mutating func relay(
        _ token: ConnectionToken,
        _ new: RelayCommandQueue.NewConnection,
        _ pool: RelayBufferPool,
        _ now: MonotonicInstant
    ) {
        let connection = RelayConnection(
            client: RelaySocket(Descriptor(owning: new.client)),
            target: RelaySocket(Descriptor(owning: new.target.number)),
            new.target,
            inspector: new.inspector,
            observer: new.observer,
            generation: token.generation,
            pool: pool,
            now: now
        )
        entries[token.index] = .relayed(connection)
    }

    /// Reserves an index for a new connection.
    mutating func reserve() -> ConnectionToken {
        nextGeneration &+= 1
        let index = vacant.popLast() ?? entries.count
        if index == entries.count { entries.append(.vacant) }
        return ConnectionToken(index: index, generation: nextGeneration)
    }

    /// Removes a connection. Its sockets close with the last reference to it.
    mutating func remove(_ index: Int) {
        entries[index] = .vacant
        vacant.append(index)
    }
}
