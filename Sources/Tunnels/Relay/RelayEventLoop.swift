import CLinux
import Glibc
import SystemIO

/// The relay thread: an edge-triggered epoll loop over both sockets of every connection.
///
/// All state belongs to the thread that runs the loop.
final class RelayEventLoop {
    /// The epoll token of the command queue. Connections have `generation << 32 | index << 1 | side`.
    private static let wakeToken = UInt64.max
    /// Marks the indices of listeners in tokens.
    static let listenerBit = 1 << 30

    let epoll = Epoll()
    let pool = RelayBufferPool()
    var tunnels: [ObjectIdentifier: LoopTunnel] = [:]
    var listeners: [LoopListener?] = []
    var connections = ConnectionTable()
    /// The connections that wait for a place at usbmuxd.
    var connects = ConnectQueue()
    /// The listeners with more clients than one turn accepts.
    var readyListeners: [Int] = []

    private let commands: RelayCommandQueue
    private let idle: Duration
    private let linkCheckTimeout: Duration
    private let owners = SocketOwnerLookup()
    /// Indices of connections that used up their budget and have more bytes to move.
    private var ready: [Int] = []
    /// The deadlines of connections and listeners.
    private var timers = TimerHeap()
    private var stopped: [CheckedContinuation<Void, Never>] = []

    init(_ commands: RelayCommandQueue, idle: Duration, linkCheckTimeout: Duration) {
        self.commands = commands
        self.idle = idle
        self.linkCheckTimeout = linkCheckTimeout
        epoll.watch(commands.wake.number, events: EPOLLIN.rawValue, token: Self.wakeToken)
    }

    /// Runs until the stop command.
    func run() {
        SplicePipe.blockSIGPIPE()
        let events = UnsafeMutableBufferPointer<epoll_event>.allocate(capacity: 256)
        defer { events.deallocate() }
        while stopped.isEmpty {
            let count = epoll.wait(events, timeout: epollTimeout)
            let now = MonotonicInstant.now
            var hasCommands = false
            for event in events.prefix(count) {
                if event.data.u64 == Self.wakeToken { hasCommands = true } else { handle(event, now) }
            }
            let waiting = readyListeners
            readyListeners = []
            for index in waiting { accept(index, now) }
            // Commands come first, so that closing connections does not wait for busy ones.
            if hasCommands { execute(commands.drain(), now) }
            let batch = ready
            ready = []
            for index in batch {
                process(index, now)
                // Commands also run between the connections of one iteration, because each may move its whole budget.
                if commands.hasCommands { execute(commands.drain(), now) }
            }
            while let token = timers.popDue(at: now) { handleTimer(token, now) }
            startConnects(now)
        }
        let now = MonotonicInstant.now
        execute(commands.close(), now)
        for index in connections.indices { closeAny(index) }
        for continuation in stopped { continuation.resume() }
    }

    /// The interval between the timeout checks of a connection.
    private var interval: Duration { min(idle / 4, .milliseconds(25)) }

    private var epollTimeout: CInt { ready.isEmpty && readyListeners.isEmpty ? timers.epollTimeout : 0 }

    private func execute(_ batch: consuming [RelayCommandQueue.Command], _ now: MonotonicInstant) {
        // Each command is released before the next one runs. A connection's permit must not outlive a close in the same
        // batch.
        batch.reverse()
        while let command = batch.popLast() { execute(command, now) }
    }

    private func execute(_ command: RelayCommandQueue.Command, _ now: MonotonicInstant) {
        switch command {
        case .adopt(let new):
            let token = connections.reserve()
            connections.relay(token, new, pool, now)
            let isWatched = watch(new.client, of: token, side: 0) && watch(new.target.number, of: token, side: 1)
            if !isWatched { close(token.index, .targetFailed(errno)) }
        case .listen(let configuration): listen(configuration, now)
        case .setTarget(let id, let target):
            tunnels[id]?.target = target
            tunnels[id]?.reportsConnected = true
        case .stopListening(let id, let continuation):
            stopListening(id)
            continuation.resume()
        case .connect(let request): connect(request, now)
        case .abandon(let request): abandon(request)
        case .dialed(let token, let result): dialed(token, result, now)
        case .linkChecked(let token, let isReachable):
            guard let connection = connections.relayed(token) else { return }
            connection.linkChecked(isReachable: isReachable)
            process(token.index, now)
        case .closeConnections(let groups, let routes, let continuation):
            closeConnections(of: groups, over: routes)
            continuation.resume()
        case .stop(let continuation):
            stopped.append(continuation)
        }
    }

    /// Closes the relayed connections of these observers over these routes, and the others at their handover.
    private func closeConnections(of groups: Set<ObjectIdentifier>, over routes: RevokedRoutes) {
        for index in connections.indices {
            if case .pending(let pending) = connections[index] {
                guard let metrics = pending.tunnel?.configuration.metrics else { continue }
                if groups.contains(ObjectIdentifier(metrics)) { pending.revoke(routes) }
            } else if connections.belongs(index, to: groups, over: routes) {
                close(index, .aborted)
            }
        }
        // The routes of the snapshot may be among those that were revoked.
        if case .network = routes { for id in groups { tunnels[id]?.target = nil } }
    }

    /// Registers a socket of a connection with epoll: 0 is the client's side, 1 the target's.
    func watch(_ number: CInt, of token: ConnectionToken, side: UInt64) -> Bool {
        let event = UInt64(token.generation) << 32 | UInt64(token.index) << 1 | side
        return epoll.watch(number, events: RelaySocket.interest, token: event)
    }

    private func handle(_ event: epoll_event, _ now: MonotonicInstant) {
        let number = event.data.u64
        let token = ConnectionToken(index: Int(number >> 1 & 0x7FFF_FFFF), generation: UInt32(number >> 32))
        if token.index & Self.listenerBit != 0 { return readyListeners.append(token.index & ~Self.listenerBit) }
        let isClient = number & 1 == 0
        // An earlier event of the same batch may have closed the connection or reused its index.
        if let connection = connections.relayed(token) {
            connection.handleEvents(event.events, onClient: isClient)
            // The connection is processed with the ready list, once for both sockets.
            queue(connection, token.index)
        } else if let pending = connections.pending(token) {
            let next = isClient ? pending.handleClient(event.events) : pending.handleTarget(event.events, pool)
            if let next { advance(pending, next, now) }
        }
    }

    private func handleTimer(_ number: UInt64, _ now: MonotonicInstant) {
        let token = ConnectionToken(number)
        if token.index & Self.listenerBit != 0 { return accept(token.index & ~Self.listenerBit, now) }
        if let pending = connections.pending(token) { return handleTimer(of: pending, now) }
        guard let connection = connections.relayed(token) else { return }
        connection.hasTimer = false
        process(token.index, now)
    }

    /// Starts a timer for a connection or a listener.
    func schedule(_ token: ConnectionToken, at deadline: MonotonicInstant) {
        timers.add(token.number, until: deadline)
        guard timers.count > 2 * connections.count + 1_024 else { return }
        timers.prune { number in
            let token = ConnectionToken(number)
            return token.index & Self.listenerBit != 0 || connections.pending(token) != nil
                || connections.relayed(token) != nil
        }
    }

    private func queue(_ connection: RelayConnection, _ index: Int) {
        guard !connection.isQueued else { return }
        connection.isQueued = true
        ready.append(index)
    }

    func process(_ index: Int, _ now: MonotonicInstant) {
        if let reason = advance(index, now) { close(index, reason) }
    }

    /// Moves bytes, starts a pending link check, and checks for completion.
    ///
    /// - Returns: The reason if the connection is over; otherwise nil.
    private func advance(_ index: Int, _ now: MonotonicInstant) -> RelayOutcome.Reason? {
        guard case .relayed(let connection) = connections[index] else { return nil }
        connection.isQueued = false
        if connection.pump(through: pool, now: now) { queue(connection, index) }
        let token = ConnectionToken(index: index, generation: connection.generation)
        if let linkChecker = connection.pendingLinkCheck(until: now + linkCheckTimeout) {
            linkChecker.check { [commands] isReachable in
                _ = commands.enqueue(.linkChecked(connection: token, isReachable: isReachable))
            }
        }
        switch connection.checkCompletion(idle: idle, owners: owners, now: now) {
        case .open:
            break
        case .timed where connection.hasTimer:
            break
        case .timed:
            connection.hasTimer = true
            schedule(token, at: now + interval)
        case .over(let reason):
            return reason
        }
        return nil
    }

    private func close(_ index: Int, _ reason: RelayOutcome.Reason) {
        guard let (observer, permit, outcome) = finish(index, reason) else { return }
        // This is the last reference. Both descriptors close here, before the permit is released.
        connections.remove(index)
        withExtendedLifetime(permit) { observer.ended(outcome) }
    }

    private func finish(
        _ index: Int,
        _ reason: RelayOutcome.Reason
    ) -> (any RelayObserver, permit: (any Sendable)?, RelayOutcome)? {
        guard case .relayed(let connection) = connections[index] else { return nil }
        return (connection.observer, connection.permit, connection.finish(reason))
    }

    /// Closes a connection of any kind, because the loop stops.
    private func closeAny(_ index: Int) {
        if case .pending(let pending) = connections[index] { finish(pending) } else { close(index, .aborted) }
    }
}
