import CLinux
import Glibc
import Model
import SystemIO

/// The listeners of the event loop.
extension RelayEventLoop {
    func listen(_ configuration: TunnelConfiguration, _ now: MonotonicInstant) {
        let tunnel = LoopTunnel(configuration)
        tunnels[ObjectIdentifier(configuration.metrics)] = tunnel
        for socket in configuration.sockets {
            let index = listeners.firstIndex { $0 == nil } ?? listeners.count
            if index == listeners.count { listeners.append(nil) }
            listeners[index] = LoopListener(socket, of: tunnel)
            accept(index, now)
        }
    }

    func stopListening(_ id: ObjectIdentifier) {
        guard let tunnel = tunnels.removeValue(forKey: id) else { return }
        for (index, listener) in listeners.enumerated() where listener?.tunnel === tunnel {
            if let listener { epoll.unwatch(listener.socket.number) }
            listeners[index] = nil
        }
        for index in connections.indices {
            if case .pending(let pending) = connections[index], pending.tunnel === tunnel { finish(pending) }
        }
    }

    /// Accepts waiting clients.
    func accept(_ index: Int, _ now: MonotonicInstant) {
        guard let listener = listeners[index] else { return }
        if !listener.isWatched {
            let token = UInt64(index | Self.listenerBit) << 1
            guard epoll.watch(listener.socket.number, events: EPOLLIN.rawValue | EPOLLET.rawValue, token: token) else {
                return retry(index, after: listener.failed("epoll_ctl", code: errno), now)
            }
            listener.isWatched = true
        }
        for _ in 0..<LoopListener.batch {
            listener.isFull = listener.inProgress >= listener.tunnel.configuration.limits.concurrentDials
            if listener.isFull { return }
            var peer = sockaddr_storage()
            let number = CLinux_accept_from(listener.socket.number, &peer)
            if number >= 0 {
                listener.succeeded()
                begin(Descriptor(owning: number), from: SocketAddress(peer), on: listener, now)
                continue
            }
            switch errno {
            case EAGAIN: return listener.succeeded()
            case EMFILE, ENFILE, ENOBUFS, ENOMEM, EBADF, EINVAL, ENOTSOCK, EOPNOTSUPP:
                return retry(index, after: listener.failed("accept4", code: errno), now)
            default: continue  // An error of one connection, which has left the queue (accept(2)).
            }
        }
        readyListeners.append(index)
    }

    private func retry(_ index: Int, after delay: Duration, _ now: MonotonicInstant) {
        schedule(ConnectionToken(index: index | Self.listenerBit, generation: 0), at: now + delay)
    }

    private func begin(
        _ client: consuming Descriptor,
        from peer: SocketAddress?,
        on listener: LoopListener,
        _ now: MonotonicInstant
    ) {
        let metrics = listener.tunnel.configuration.metrics
        guard metrics.connectionAccepted() else { return client.reset() }
        let number = client.number
        let token = connections.reserve()
        let pending = PendingConnection(client, peer: peer, on: listener, token: token, now: now)
        connections[token.index] = .pending(pending)
        listener.inProgress += 1
        guard watch(number, of: token, side: 0) else {
            let error = SocketError.failed(call: "epoll_ctl", on: "a client", code: errno)
            return finish(pending, DialError(.limit, "a client was rejected: \(error)"))
        }
        advance(pending, .accepted, now)
    }
}

/// The connector: performs the actions of the state machines.
extension RelayEventLoop {
    /// Performs actions until the connection waits, is relayed, or has ended.
    func advance(_ pending: PendingConnection, _ event: ConnectionState.Event, _ now: MonotonicInstant) {
        var next: ConnectionState.Event? = event
        while let event = next { next = perform(pending.state.handle(event, now: now), pending, now) }
        startTimer(of: pending)
    }

    private func startTimer(of pending: PendingConnection) {
        guard connections.pending(pending.token) != nil, let deadline = pending.deadline,
            pending.timer.map({ deadline < $0 }) ?? true
        else { return }
        pending.timer = deadline
        schedule(pending.token, at: deadline)
    }

    func handleTimer(of pending: PendingConnection, _ now: MonotonicInstant) {
        pending.timer = nil
        pending.releaseServer(&connects, now)
        guard let deadline = pending.state.deadline, now >= deadline else { return startTimer(of: pending) }
        advance(pending, .deadlineReached, now)
    }

    /// Starts the connects that have a place now.
    func startConnects(_ now: MonotonicInstant) {
        while let (token, place) = connects.next() {
            guard let pending = connections.pending(token) else {
                connects.release(place)
                continue
            }
            pending.hold(place, now)
            advance(pending, .placeFree, now)
        }
    }

    /// Connects by the plan of a request.
    func connect(_ request: ConnectRequest, _ now: MonotonicInstant) {
        let token = connections.reserve()
        let pending = PendingConnection(request, token: token, now: now)
        connections[token.index] = .pending(pending)
        advance(pending, .checked(.passes), now)
    }

    func abandon(_ request: ConnectRequest) {
        for index in connections.indices {
            if case .pending(let pending) = connections[index], pending.request === request { finish(pending) }
        }
    }

    /// Handles the result of a dial on a task.
    func dialed(_ token: ConnectionToken, _ result: Result<RelayTarget, DialError>, _ now: MonotonicInstant) {
        guard let pending = connections.pending(token) else {
            try? result.get().reject()
            return
        }
        pending.dialRequest = nil
        switch result {
        case .failure(let failure):
            pending.tunnel?.reportsConnected = true
            advance(pending, .dialFailed(failure), now)
        case .success(let target):
            if pending.isRevoked(target.route) {
                target.reject()
                return advance(pending, .networkRevoked, now)
            }
            pending.leave(&connects)
            pending.abandonPlan()
            pending.target = RelaySocket(Descriptor(owning: target.number))
            guard watch(target.number, of: token, side: 1) else {
                let error = SocketError.failed(call: "epoll_ctl", on: "a target", code: errno)
                return finish(pending, DialError(.limit, "\(error)"))
            }
            if pending.state.handle(.dialed, now: now) == .relay { relay(pending, target, now) }
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
        case .inspect: return .inspected(pending.inspect(pool, now))
        case .selectPlan:
            pending.dialStart = now
            return pending.selectPlan()
        case .awaitPlace: return pending.enter(&connects, now)
        case .connect:
            pending.target = nil
            return pending.connect { watch($0, of: pending.token, side: 1) }
        case .sendRequest: return pending.sendRequest()
        case .dial:
            let attempt = pending.plan.map { (route: $0.route, failure: pending.planFailure) }
            pending.leave(&connects)
            pending.abandonPlan()
            guard pending.request == nil else {
                finish(pending, failure: attempt?.failure ?? .closed)
                return nil
            }
            dial(DialRequest(token: pending.token, attempt: attempt), for: pending)
        case .race: dial(DialRequest(token: pending.token, racing: pending.plan?.route), for: pending)
        case .abandonPlan:
            pending.leave(&connects)
            pending.abandonPlan()
        case .relay: return relayByPlan(pending, now)
        case .respond(let refusal):
            pending.tunnel?.configuration.metrics.connectionFailed(DialError(.browser, "\(refusal)"))
            pending.respond(to: refusal)
            return .clientReadable
        case .discardInput: return pending.discardInput(pool) ? .clientDisconnected : nil
        case .end(let failure): finish(pending, failure)
        }
        return nil
    }

    private func dial(_ request: DialRequest, for pending: PendingConnection) {
        pending.dialRequest = request
        pending.tunnel?.configuration.report(.dial(request))
    }

    /// Hands a connection to the relay, unless its approval was revoked since the snapshot.
    private func relayByPlan(_ pending: PendingConnection, _ now: MonotonicInstant) -> ConnectionState.Event? {
        guard let plan = pending.plan, let number = pending.target?.number else { return .clientDisconnected }
        if let request = pending.request {
            epoll.unwatch(number)
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
        guard let tunnel = pending.tunnel,
            connections.relay(pending, properties, observer: tunnel.configuration.metrics, pool, now)
        else { return }
        pending.dialRequest?.abandon()
        // The relay has the permit now. It is released before the observer hears of the end.
        pending.permit = nil
        tunnel.connected(after: now - pending.dialStart)
        leave(pending)
        process(pending.token.index, now)
    }

    /// Ends a connection that was not relayed.
    ///
    /// - Parameters:
    ///   - pending: The connection.
    ///   - error: The reason for the client's statistics; nil for none.
    ///   - failure: The failure of the plan of a request; nil if the request was abandoned.
    func finish(_ pending: PendingConnection, _ error: DialError? = nil, failure: ConnectPlan.Failure? = nil) {
        let metrics = pending.tunnel?.configuration.metrics
        if let error { metrics?.connectionFailed(error) }
        // A rejected client has its response, which RST could discard.
        if !pending.isRejected { pending.client?.makeAbortive() }
        pending.dialRequest?.abandon()
        remove(pending)
        pending.abandonPlan()
        pending.client = nil
        pending.request?.complete(.failure(failure ?? CancellationError()))
        metrics?.connectionClosed()
    }

    private func remove(_ pending: PendingConnection) {
        leave(pending)
        connections.remove(pending.token.index)
    }

    /// Frees the places of a connection that is no longer pending.
    private func leave(_ pending: PendingConnection) {
        pending.leave(&connects)
        guard let listener = pending.listener else { return }
        listener.inProgress -= 1
        guard listener.isFull, let index = listeners.firstIndex(where: { $0 === listener }) else { return }
        listener.isFull = false
        readyListeners.append(index)
    }
}
