import CLinux
import Glibc
import SystemIO

/// The identity of a connection or an acceptor in the event loop. A later connection may get the same index, never both.
struct ConnectionHandle: Hashable, Sendable {
    private static let acceptorBit = 1 << 30

    let index: Int
    let generation: UInt32

    /// The form for timers and epoll: `generation << 32 | index << 1`. In epoll, the lowest bit is set for a target.
    var number: UInt64 { UInt64(generation) << 32 | UInt64(index) << 1 }

    /// The index of an acceptor; nil for a connection.
    var acceptor: Int? { index & Self.acceptorBit == 0 ? nil : index & ~Self.acceptorBit }

    init(index: Int, generation: UInt32) {
        self.index = index
        self.generation = generation
    }

    init(acceptor index: Int) { self.init(index: index | Self.acceptorBit, generation: 0) }

    init(_ number: UInt64) { self.init(index: Int(number >> 1 & 0x7FFF_FFFF), generation: UInt32(number >> 32)) }
}

/// The connections of an event loop, with their registrations, timers and memory. Belongs to the loop's thread.
final class ConnectionTable {
    /// A connection before and after its handover to the relay. It keeps its handle.
    enum Entry {
        case vacant
        case pending(PendingConnection)
        /// Its sockets close with the last reference, so no one else holds one while the connection may end.
        case relayed(RelayConnection)
    }

    let epoll = Epoll()
    let pool = RelayBufferPool()
    private var entries: [Entry] = []
    private var vacant: [Int] = []
    private var nextGeneration: UInt32 = 0
    /// Indices of relayed connections that are new, had an event, or have more bytes to move than their budget.
    private var ready: [Int] = []
    /// The deadlines of connections and acceptors.
    private var timers = TimerHeap()

    var indices: Range<Int> { entries.indices }

    subscript(index: Int) -> Entry {
        get { entries[index] }
        set { entries[index] = newValue }
    }

    /// The relayed connection with a handle, if it has not ended.
    func relayed(_ handle: ConnectionHandle) -> RelayConnection? {
        guard case .relayed(let connection) = entries[handle.index], connection.generation == handle.generation else {
            return nil
        }
        return connection
    }

    /// The pending connection with a handle, if it has not ended and is not relayed yet.
    func pending(_ handle: ConnectionHandle) -> PendingConnection? {
        guard case .pending(let pending) = entries[handle.index], pending.handle == handle else { return nil }
        return pending
    }

    /// Changes the relayed connection with a handle. The caller holds no reference to it and may close it afterwards.
    ///
    /// - Returns: False if the connection has ended.
    func update(_ handle: ConnectionHandle, _ change: (RelayConnection) -> Void) -> Bool {
        guard let connection = relayed(handle) else { return false }
        change(connection)
        return true
    }

    /// True for a relayed connection of an observer over one of these routes. The caller holds no reference to it.
    func belongs(_ index: Int, to observer: ObjectIdentifier, over routes: RevokedRoutes) -> Bool {
        guard case .relayed(let connection) = entries[index] else { return false }
        return ObjectIdentifier(connection.observer) == observer && routes.contains(connection.route)
    }

    /// Reserves an index for a new connection.
    func reserve() -> ConnectionHandle {
        nextGeneration &+= 1
        let index = vacant.popLast() ?? entries.count
        if index == entries.count { entries.append(.vacant) }
        return ConnectionHandle(index: index, generation: nextGeneration)
    }

    /// Removes a connection. Its sockets close with the last reference to it.
    func remove(_ index: Int) {
        entries[index] = .vacant
        vacant.append(index)
    }

    /// Stores the relayed form of a connection, which is processed in this turn or the next one.
    func relay(_ handle: ConnectionHandle, _ connection: RelayConnection) {
        entries[handle.index] = .relayed(connection)
        queue(connection, handle.index)
    }

    /// Registers a socket of a connection with epoll, which reports its bytes, and the end of a connect in progress.
    func watch(_ number: CInt, of handle: ConnectionHandle, isTarget: Bool, isConnecting: Bool = false) -> Bool {
        let events = isConnecting ? RelaySocket.readsAndWrites : RelaySocket.reads
        return epoll.watch(number, events: events, token: handle.number | (isTarget ? 1 : 0))
    }

    /// Adds writes to the reports of epoll for the full sockets of a relayed connection.
    func watchFullSockets(of connection: RelayConnection, _ handle: ConnectionHandle) {
        connection.forEachFullSocket { number, isTarget in
            epoll.change(number, events: RelaySocket.readsAndWrites, token: handle.number | (isTarget ? 1 : 0))
        }
    }

    /// Adds a relayed connection to the ready list, once.
    func queue(_ connection: RelayConnection, _ index: Int) {
        guard !connection.isQueued else { return }
        connection.isQueued = true
        ready.append(index)
    }

    /// Removes the ready list and stores it in `list`, whose memory is used again.
    func takeReady(into list: inout [Int]) {
        list.removeAll(keepingCapacity: true)
        swap(&ready, &list)
    }

    /// The timeout of the next epoll_wait(2).
    func nextTimeout() -> CInt {
        guard ready.isEmpty else { return 0 }
        timers.dropEnded(isPending)
        return timers.epollTimeout
    }

    /// Starts a timer for a connection or an acceptor.
    func schedule(_ handle: ConnectionHandle, at deadline: MonotonicInstant) {
        timers.add(handle.number, until: deadline)
        guard timers.count > 2 * entries.count + 1_024 else { return }
        timers.prune(isPending)
    }

    /// True for the timer of an acceptor, and of a connection that waits for one.
    private func isPending(_ timer: UInt64) -> Bool {
        let handle = ConnectionHandle(timer)
        return handle.acceptor != nil || pending(handle) != nil || relayed(handle)?.hasTimer == true
    }

    /// Removes and returns the next timer that is due.
    func popDueTimer(at now: MonotonicInstant) -> ConnectionHandle? {
        timers.popDue(at: now).map { ConnectionHandle($0) }
    }
}
