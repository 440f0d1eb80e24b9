import CLinux
import Glibc
import Model
import SystemIO

/// Accepts, checks and connects the clients of an event loop, until it hands them to the relay. Belongs to the loop's thread.
///
/// `ConnectionState` decides, and the connector performs the actions.
final class Connector {
    var tunnels: [ObjectIdentifier: LoopTunnel] = [:]

    private let connections: ConnectionTable
    private var acceptors: [Acceptor?] = []
    /// The acceptors with more clients than one turn accepts.
    private var readyAcceptors: [Int] = []
    /// The connections that wait for a slot at usbmuxd.
    private var connects = ConnectQueue()

    init(_ connections: ConnectionTable) { self.connections = connections }

    /// True if an acceptor has more clients.
    var hasClients: Bool { !readyAcceptors.isEmpty }

    func listen(_ listener: TunnelListener, _ now: MonotonicInstant) {
        let tunnel = LoopTunnel(listener)
        tunnels[ObjectIdentifier(listener.metrics)] = tunnel
        for socket in listener.sockets {
            let index = acceptors.firstIndex { $0 == nil } ?? acceptors.count
            if index == acceptors.count { acceptors.append(nil) }
            acceptors[index] = Acceptor(socket, of: tunnel)
            accept(index, now)
        }
    }

    func stopListening(_ id: ObjectIdentifier) {
        guard let tunnel = tunnels.removeValue(forKey: id) else { return }
        for (index, acceptor) in acceptors.enumerated() where acceptor?.tunnel === tunnel {
            if let acceptor { connections.epoll.unwatch(acceptor.socket.number) }
            acceptors[index] = nil
        }
        for index in connections.indices {
            if case .pending(let pending) = connections[index], pending.tunnel === tunnel { finish(pending) }
        }
    }

    /// Notes that clients of an acceptor wait.
    func clientsWait(_ acceptor: Int) { readyAcceptors.append(acceptor) }

    /// Accepts the clients that wait.
    func acceptClients(_ now: MonotonicInstant) {
        guard hasClients else { return }
        let waiting = readyAcceptors
        readyAcceptors = []
        for index in waiting { accept(index, now) }
    }

    /// Accepts the clients of one socket.
    func accept(_ index: Int, _ now: MonotonicInstant) {
        guard let acceptor = acceptors[index] else { return }
        let handle = ConnectionHandle(acceptor: index)
        if !acceptor.isWatched {
            let (number, interest) = (acceptor.socket.number, EPOLLIN.rawValue | EPOLLET.rawValue)
            guard connections.epoll.watch(number, events: interest, token: handle.number) else {
                return connections.schedule(handle, at: now + acceptor.failed("epoll_ctl", code: errno))
            }
            acceptor.isWatched = true
        }
        for _ in 0..<Acceptor.batch {
            switch acceptor.accept() {
            case .client(let number, let peer): begin(Descriptor(owning: number), from: peer, on: acceptor, now)
            case .empty: return
            case .failed(let delay): return connections.schedule(handle, at: now + delay)
            }
        }
        readyAcceptors.append(index)
    }

    private func begin(
        _ client: consuming Descriptor,
        from peer: SocketAddress?,
        on acceptor: Acceptor,
        _ now: MonotonicInstant
    ) {
        let metrics = acceptor.tunnel.listener.metrics
        guard metrics.connectionAccepted() else { return client.reset() }
        let number = client.number
        let handle = connections.reserve()
        let pending = PendingConnection(client, peer: peer, on: acceptor, handle: handle, now: now)
        connections[handle.index] = .pending(pending)
        acceptor.inProgress += 1
        guard connections.watch(number, of: handle, isTarget: false) else {
            let error = SocketError.failed(call: "epoll_ctl", on: "a client", code: errno)
            return finish(pending, DialError(.limit, "a client was rejected: \(error)"))
        }
        advance(pending, .accepted, now)
    }

    /// Performs actions until the connection waits, is relayed, or has ended.
    func advance(_ pending: PendingConnection, _ event: ConnectionState.Event, _ now: MonotonicInstant) {
        var next: ConnectionState.Event? = event
        while let event = next { next = perform(pending.state.handle(event, now: now), pending, now) }
        startTimer(of: pending)
    }

    private func startTimer(of pending: PendingConnection) {
        guard connections.pending(pending.handle) != nil, let deadline = pending.deadline,
            pending.timer.map({ deadline < $0 }) ?? true
        else { return }
        pending.timer = deadline
        connections.schedule(pending.handle, at: deadline)
    }

    func handleTimer(of pending: PendingConnection, _ now: MonotonicInstant) {
        pending.timer = nil
        pending.releaseServer(&connects, now)
        guard let deadline = pending.state.deadline, now >= deadline else { return startTimer(of: pending) }
        advance(pending, .deadlineReached, now)
    }

    /// Starts the connects that have a slot now.
    func startConnects(_ now: MonotonicInstant) {
        while let (handle, slot) = connects.next() {
            guard let pending = connections.pending(handle) else {
                connects.release(slot)
                continue
            }
            pending.take(slot, now)
            advance(pending, .slotFree, now)
        }
    }

    /// Connects by the plan of a request.
    func connect(_ request: ConnectRequest, _ now: MonotonicInstant) {
        let handle = connections.reserve()
        request.handle = handle
        let pending = PendingConnection(request, handle: handle, now: now)
        connections[handle.index] = .pending(pending)
        advance(pending, .checked(.passes), now)
    }

    func abandon(_ request: ConnectRequest) {
        if let pending = connections.pending(request.handle) { finish(pending) }
    }

    /// Handles the result of the fallback.
    func fallbackEnded(_ handle: ConnectionHandle, _ result: Result<RelayTarget, DialError>, _ now: MonotonicInstant) {
        guard let pending = connections.pending(handle) else {
            try? result.get().reject()
            return
        }
        pending.fallback = nil
        switch result {
        case .failure(let failure):
            pending.tunnel?.reportsConnected = true
            advance(pending, .fallbackFailed(failure), now)
        case .success(let target):
            if pending.isRevoked(target.route) {
                target.reject()
                return advance(pending, .networkRevoked, now)
            }
            pending.leave(&connects)
            pending.abandonPlan()
            pending.target = RelaySocket(Descriptor(owning: target.number))
            guard connections.watch(target.number, of: handle, isTarget: true) else {
                let error = SocketError.failed(call: "epoll_ctl", on: "a target", code: errno)
                return finish(pending, DialError(.limit, "\(error)"))
            }
            if pending.state.handle(.fallbackConnected, now: now) == .relay { relay(pending, target, now) }
        }
    }

    private func perform(
        _ action: ConnectionState.Action,
        _ pending: PendingConnection,
        _ now: MonotonicInstant
    ) -> ConnectionState.Event? {
        switch action {
        case .wait: return nil
        case .checkClient: return .checked(pending.checkClient())
        case .inspect: return .inspected(pending.inspect(connections.pool, now))
        case .selectPlan:
            pending.connectStart = now
            return pending.selectPlan()
        case .awaitSlot: return pending.enter(&connects, now)
        case .connect:
            pending.target = nil
            return pending.connect { number, isConnecting in
                connections.watch(number, of: pending.handle, isTarget: true, isConnecting: isConnecting)
            }
        case .sendRequest: return pending.sendRequest()
        case .startFallback:
            let attempt = pending.plan.map { (route: $0.route, failure: pending.failure ?? .timedOut) }
            pending.leave(&connects)
            pending.abandonPlan()
            guard pending.request == nil else {
                finish(pending, failure: attempt?.failure ?? .closed)
                return nil
            }
            start(FallbackRequest(handle: pending.handle, attempt: attempt), for: pending)
        case .race: start(FallbackRequest(handle: pending.handle, racing: pending.plan?.route), for: pending)
        case .abandonPlan:
            pending.leave(&connects)
            pending.abandonPlan()
        case .relay: return relayByPlan(pending, now)
        case .reject(let refusal): reject(pending, refusal, now)
        case .end(let failure): finish(pending, failure)
        }
        return nil
    }

    private func start(_ request: FallbackRequest, for pending: PendingConnection) {
        pending.fallback = request
        pending.tunnel?.listener.report(.fallback(request))
    }

    /// Hands a client to the relay that gets no target.
    private func reject(_ pending: PendingConnection, _ refusal: BrowserGuard.Refusal, _ now: MonotonicInstant) {
        guard let listener = pending.tunnel?.listener, let client = pending.client.take() else { return }
        connections.relay(
            pending.handle,
            RelayConnection(
                rejecting: client,
                refusal,
                drainTimeout: listener.limits.inspection.drain,
                observer: listener.metrics,
                generation: pending.handle.generation,
                now: now
            )
        )
        leave(pending)
    }

    /// Hands a connection to the relay, unless its approval was revoked since the snapshot.
    private func relayByPlan(_ pending: PendingConnection, _ now: MonotonicInstant) -> ConnectionState.Event? {
        guard let plan = pending.plan, let number = pending.target?.number else { return .clientDisconnected }
        if let request = pending.request {
            connections.epoll.unwatch(number)
            let target = pending.connectedTarget(pending.target.take()?.release().release() ?? -1, of: plan)
            remove(pending)
            request.complete(.success(target))
            return nil
        }
        if pending.isRevoked(plan.route) { return .networkRevoked }
        relay(pending, pending.connectedTarget(number, of: plan), now)
        return nil
    }

    private func relay(_ pending: PendingConnection, _ properties: RelayTarget, _ now: MonotonicInstant) {
        guard let tunnel = pending.tunnel, let client = pending.client.take(), let target = pending.target.take() else {
            return
        }
        connections.relay(
            pending.handle,
            RelayConnection(
                client: client,
                target: target,
                properties,
                addresses: pending.addresses,
                inspector: pending.inspector,
                observer: tunnel.listener.metrics,
                generation: pending.handle.generation,
                now: now
            )
        )
        pending.fallback?.abandon()
        // The relay has the permit now. It is released before the observer hears of the end.
        pending.permit = nil
        tunnel.connected(after: now - pending.connectStart)
        leave(pending)
    }

    /// Ends a connection that was not relayed.
    ///
    /// - Parameters:
    ///   - pending: The connection.
    ///   - error: The reason for the client's statistics; nil for none.
    ///   - failure: The failure of the plan of a request; nil if the request was abandoned.
    func finish(_ pending: PendingConnection, _ error: DialError? = nil, failure: ConnectPlan.AttemptFailure? = nil) {
        let metrics = pending.tunnel?.listener.metrics
        if let error { metrics?.connectionFailed(error) }
        pending.client?.makeAbortive()
        pending.fallback?.abandon()
        remove(pending)
        pending.abandonPlan()
        pending.client = nil
        pending.request?.complete(.failure(failure ?? CancellationError()))
        metrics?.connectionClosed()
    }

    private func remove(_ pending: PendingConnection) {
        leave(pending)
        connections.remove(pending.handle.index)
    }

    /// Frees the slots of a connection that is no longer pending.
    private func leave(_ pending: PendingConnection) {
        pending.leave(&connects)
        guard let acceptor = pending.acceptor else { return }
        acceptor.inProgress -= 1
        guard acceptor.isFull, let index = acceptors.firstIndex(where: { $0 === acceptor }) else { return }
        acceptor.isFull = false
        readyAcceptors.append(index)
    }
}
