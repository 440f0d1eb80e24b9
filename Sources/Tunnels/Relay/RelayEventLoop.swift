import CLinux
import Glibc
import SystemIO

/// The relay thread: an edge-triggered epoll loop over both sockets of every connection.
///
/// All state belongs to the thread that runs the loop.
final class RelayEventLoop {
    /// The epoll token of the command queue. All others are a `ConnectionHandle`.
    private static let wakeToken = UInt64.max

    private let connections = ConnectionTable()
    private let connector: Connector
    private let commands: RelayCommandQueue
    private let idle: Duration
    private let linkCheckTimeout: Duration
    private let owners = SocketOwnerLookup()
    private var stopped: [CheckedContinuation<Void, Never>] = []

    init(_ commands: RelayCommandQueue, idle: Duration, linkCheckTimeout: Duration) {
        connector = Connector(connections)
        self.commands = commands
        self.idle = idle
        self.linkCheckTimeout = linkCheckTimeout
        connections.epoll.watch(commands.wake.number, events: EPOLLIN.rawValue, token: Self.wakeToken)
    }

    /// Runs until the stop command.
    func run() {
        SplicePipe.blockSIGPIPE()
        let events = UnsafeMutableBufferPointer<epoll_event>.allocate(capacity: 256)
        defer { events.deallocate() }
        var ready: [Int] = []
        while stopped.isEmpty {
            let count = connections.epoll.wait(events, timeout: connector.hasClients ? 0 : connections.nextTimeout())
            let now = MonotonicInstant.now
            var hasCommands = false
            for event in events.prefix(count) {
                if event.data.u64 == Self.wakeToken { hasCommands = true } else { handle(event, now) }
            }
            connector.acceptClients(now)
            // Commands come first, so that closing connections does not wait for busy ones.
            if hasCommands { execute(commands.drain(), now) }
            connections.takeReady(into: &ready)
            for index in ready {
                process(index, now)
                // Commands also run between the connections of one iteration, because each may move its whole budget.
                if commands.hasCommands { execute(commands.drain(), now) }
            }
            while let handle = connections.popDueTimer(at: now) { handleTimer(handle, now) }
            connector.startConnects(now)
        }
        let now = MonotonicInstant.now
        execute(commands.drain(isLast: true), now)
        for index in connections.indices { closeAny(index) }
        for continuation in stopped { continuation.resume() }
    }

    /// The interval between the timeout checks of a connection.
    private var interval: Duration { min(idle / 4, .milliseconds(25)) }

    private func execute(_ batch: consuming [RelayCommandQueue.Command], _ now: MonotonicInstant) {
        // Each command is released before the next one runs. A connection's permits must not outlive a close in the same
        // batch.
        batch.reverse()
        while let command = batch.popLast() { execute(command, now) }
    }

    private func execute(_ command: RelayCommandQueue.Command, _ now: MonotonicInstant) {
        switch command {
        case .adopt(let new):
            let handle = connections.reserve()
            connections.relay(
                handle,
                RelayConnection(
                    client: RelaySocket(Descriptor(owning: new.client)),
                    target: RelaySocket(Descriptor(owning: new.target.number)),
                    new.target,
                    inspector: new.inspector,
                    observer: new.observer,
                    generation: handle.generation,
                    now: now
                )
            )
            let isWatched =
                connections.watch(new.client, of: handle, isTarget: false)
                && connections.watch(new.target.number, of: handle, isTarget: true)
            if !isWatched { close(handle.index, .targetFailed(errno)) }
        case .listen(let listener): connector.listen(listener, now)
        case .setTarget(let id, let target):
            connector.tunnels[id]?.target = target
            connector.tunnels[id]?.reportsConnected = true
        case .stopListening(let id, let continuation):
            connector.stopListening(id)
            continuation.resume()
        case .connect(let request): connector.connect(request, now)
        case .abandon(let request): connector.abandon(request)
        case .fallbackEnded(let handle, let result): connector.fallbackEnded(handle, result, now)
        case .linkChecked(let handle, let isReachable):
            let isOpen = connections.update(handle) { $0.linkChecked(isReachable: isReachable) }
            if isOpen { process(handle.index, now) }
        case .closeConnections(let observer, let routes, let continuation):
            closeConnections(of: observer, over: routes)
            continuation.resume()
        case .stop(let continuation):
            stopped.append(continuation)
        }
    }

    /// Closes the relayed connections of an observer over these routes, and the others at their handover.
    private func closeConnections(of observer: ObjectIdentifier, over routes: RevokedRoutes) {
        for index in connections.indices {
            if case .pending(let pending) = connections[index] {
                guard let metrics = pending.tunnel?.listener.metrics else { continue }
                if ObjectIdentifier(metrics) == observer { pending.revoke(routes) }
            } else if connections.belongs(index, to: observer, over: routes) {
                close(index, .aborted)
            }
        }
        // The routes of the snapshot may be among those that were revoked.
        if case .network = routes { connector.tunnels[observer]?.target = nil }
    }

    private func handle(_ event: epoll_event, _ now: MonotonicInstant) {
        let number = event.data.u64
        let handle = ConnectionHandle(number)
        if let acceptor = handle.acceptor { return connector.clientsWait(acceptor) }
        let isClient = number & 1 == 0
        // An earlier event of the same batch may have closed the connection or reused its index.
        if let connection = connections.relayed(handle) {
            connection.handleEvents(event.events, onClient: isClient)
            // The connection is processed with the ready list, once for both sockets.
            connections.queue(connection, handle.index)
        } else if let pending = connections.pending(handle) {
            let next =
                isClient ? pending.handleClient(event.events) : pending.handleTarget(event.events, connections.pool)
            if let next { connector.advance(pending, next, now) }
        }
    }

    private func handleTimer(_ handle: ConnectionHandle, _ now: MonotonicInstant) {
        if let acceptor = handle.acceptor { return connector.accept(acceptor, now) }
        if let pending = connections.pending(handle) { return connector.handleTimer(of: pending, now) }
        if connections.update(handle, { $0.hasTimer = false }) { process(handle.index, now) }
    }

    private func process(_ index: Int, _ now: MonotonicInstant) {
        if let reason = advance(index, now) { close(index, reason) }
    }

    /// Moves bytes, starts a pending link check, and checks for completion.
    ///
    /// - Returns: The reason if the connection is over; otherwise nil.
    private func advance(_ index: Int, _ now: MonotonicInstant) -> RelayOutcome.Reason? {
        guard case .relayed(let connection) = connections[index] else { return nil }
        connection.isQueued = false
        let hasMore = connection.pump(through: connections.pool, now: now)
        if hasMore { connections.queue(connection, index) }
        let handle = ConnectionHandle(index: index, generation: connection.generation)
        connections.watchFullSockets(of: connection, handle)
        if let linkCheck = connection.pendingLinkCheck(now: now, timeout: linkCheckTimeout) {
            linkCheck { [commands] isReachable in
                _ = commands.enqueue(.linkChecked(connection: handle, isReachable: isReachable))
            }
        }
        switch connection.checkCompletion(idle: idle, owners: owners, now: now) {
        case .open:
            break
        case .timed where connection.hasTimer:
            break
        case .timed:
            connection.hasTimer = true
            connections.schedule(handle, at: now + interval)
        case .over(let reason):
            return reason
        }
        return nil
    }

    private func close(_ index: Int, _ reason: RelayOutcome.Reason) {
        guard let (observer, permits, outcome) = finish(index, reason) else { return }
        // This is the last reference. Both descriptors close here, before the permits are released.
        connections.remove(index)
        withExtendedLifetime(permits) { observer.ended(outcome) }
    }

    private func finish(
        _ index: Int,
        _ reason: RelayOutcome.Reason
    ) -> (any RelayObserver, permits: [any Sendable], RelayOutcome)? {
        guard case .relayed(let connection) = connections[index] else { return nil }
        return (connection.observer, connection.permits, connection.finish(reason))
    }

    /// Closes a connection of any kind, because the loop stops.
    private func closeAny(_ index: Int) {
        if case .pending(let pending) = connections[index] { connector.finish(pending) } else { close(index, .aborted) }
    }
}
