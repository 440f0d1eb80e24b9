import Logging
import Model
import Synchronization
import SystemIO

/// The listening side of a tunnel: accepts clients, authorizes each, dials the target, and hands both sockets to the
/// relay.
///
/// The listener reads nothing from a client during its dial.
final class TunnelListener: Sendable {
    /// The result of a dial, or a change of the listening socket, for the tunnel's state.
    enum DialResult: Sendable {
        case connected
        /// The reason, and the route generation at the start of the dial.
        case failed(DialError, UInt64)
        /// The listening socket accepts no clients because of the error; nil if it accepts clients again.
        case listening(error: String?)
    }

    private enum Phase {
        case idle
        case serving
        case closed
    }

    let id: String
    let metrics: TunnelMetrics
    /// The addresses that the tunnel listens on.
    let addresses: [SocketAddress]

    private let authorizer: ClientAuthorizer
    private let dependencies: TunnelDependencies
    private let listeners: [Listener]
    private let phase = Mutex(Phase.idle)
    private let closing = AsyncStream.makeStream(of: Void.self)
    private let isClosed = AsyncLatch()
    private let network: NetworkConnectionGroup
    /// The number of calls of `closeNetworkConnections()`.
    ///
    /// The lock is held while a stream is handed to the relay. Such a call therefore cannot miss a stream that is being
    /// handed over.
    private let networkCutGeneration = Mutex(0)

    init(
        id: String,
        authorizer: ClientAuthorizer,
        listeners: [Listener],
        metrics: TunnelMetrics,
        dependencies: TunnelDependencies
    ) {
        self.id = id
        self.authorizer = authorizer
        self.listeners = listeners
        self.metrics = metrics
        network = NetworkConnectionGroup(of: metrics)
        self.dependencies = dependencies
        addresses = listeners.map(\.address)
    }

    /// Accepts and dials until `close()` or cancellation. Returns after every dial has ended and the listeners are
    /// closed.
    func serve(_ report: @escaping @Sendable (DialResult) async -> Void) async {
        guard transition(from: .idle, to: .serving) else { return }
        for address in addresses {
            guard let warning = authorizer.warning(about: address) else { continue }
            dependencies.logger.warning("\(warning)", metadata: ["tunnel": "\(id)", "address": "\(address)"])
        }
        // The steps before the relay are short and separated by waits. On one thread, no step wakes another thread.
        await withTaskExecutorPreference(Poller.shared) {
            await withTaskGroup(of: Void.self) { group in
                for listener in listeners { group.addTask { await self.accept(from: listener, report) } }
                for await _ in closing.stream {}
                group.cancelAll()
            }
        }
        closeListeners()
    }

    /// Closes the listeners and all connections. When it returns, the address is free and no more bytes are relayed.
    func close() async {
        closing.continuation.finish()
        if transition(from: .idle, to: .closed) { closeListeners() }
        await isClosed.wait()
        await dependencies.relay.closeConnections(of: metrics, network)
    }

    /// Closes all connections over the network. When it returns, none of them relays another byte.
    ///
    /// A client with a dial in progress is reset if the dial used a network route.
    func closeNetworkConnections() async {
        networkCutGeneration.withLock { $0 += 1 }
        await dependencies.relay.closeConnections(of: network)
    }

    private func closeListeners() {
        for listener in listeners { listener.close() }
        phase.withLock { $0 = .closed }
        isClosed.open()
    }

    private func transition(from old: Phase, to new: Phase) -> Bool {
        phase.withLock { phase in
            guard phase == old else { return false }
            phase = new
            return true
        }
    }

    /// Accepts clients, with at most `limits.concurrentDials` of them in progress.
    private func accept(from listener: Listener, _ report: @escaping @Sendable (DialResult) async -> Void) async {
        let dials = AsyncSemaphore(permits: dependencies.limits.concurrentDials)
        // A discarding group frees finished tasks. In other groups each finished task holds 5 kB until its result is
        // read.
        await withDiscardingTaskGroup { group in
            var isStarved = false
            var backoff = Backoff(from: dependencies.limits.acceptBackoff, to: dependencies.limits.maxAcceptBackoff)
            while true {
                guard let permit = try? await dials.acquire() else { return }
                do {
                    let client = try await listener.accept().release()
                    isStarved = false
                    if backoff.total > .zero { await report(.listening(error: nil)) }
                    backoff.reset()
                    group.addTask {
                        await self.handleClient(Descriptor(owning: client), on: listener.address, report)
                        permit.release()
                    }
                } catch let error as SocketError where error.isExhaustion {
                    permit.release()
                    if !isStarved {
                        dependencies.logger.warning(
                            "out of descriptors; clients wait in the accept queue",
                            metadata: ["tunnel": "\(id)", "reason": "\(error)"]
                        )
                    }
                    isStarved = true
                    // The connection stays in the accept queue. After a cancellation the next accept throws.
                    try? await dependencies.clock.sleep(for: dependencies.limits.acceptBackoff)
                } catch is CancellationError {
                    return
                } catch {
                    permit.release()
                    if backoff.total == .zero { await report(.listening(error: "\(error)")) }
                    // The error may be temporary, for example after a network change.
                    try? await backoff.wait(clock: dependencies.clock)
                }
            }
        }
    }

    private func handleClient(
        _ client: consuming Descriptor,
        on listener: SocketAddress,
        _ report: @Sendable (DialResult) async -> Void
    ) async {
        guard metrics.connectionAccepted() else { return client.reset() }
        let decision: ClientAuthorizer.Decision
        do {
            decision = try await authorizer.authorize(client.number, on: listener)
        } catch is CancellationError {
            decision = .disconnected
        } catch {
            decision = .refused(DialError(.limit, "a client was rejected: \(error)"))
        }
        switch decision {
        case .allowed(let inspector):
            await forward(client, inspector: inspector, report)
        case .disconnected:
            client.reset()
            metrics.connectionClosed()
        case .refused(let failure):
            client.reset()
            metrics.connectionClosed()
            metrics.connectionFailed(failure)
        case .blockedBrowser(let refusal):
            metrics.connectionFailed(DialError(.browser, "\(refusal)"))
            await ForbiddenResponse.send(
                refusal,
                to: client.number,
                limit: dependencies.limits.inspection.drain,
                clock: dependencies.clock
            )
            metrics.connectionClosed()
        }
    }

    /// Dials the target and hands both sockets to the relay.
    private func forward(
        _ client: consuming Descriptor,
        inspector: RelayInspector?,
        _ report: @Sendable (DialResult) async -> Void
    ) async {
        let pendingDial = PendingDial()
        let started = ContinuousClock.now
        let count = dependencies.routeGeneration.current
        let generation = networkCutGeneration.withLock { $0 }
        let usesNetwork = Atomic(false)
        let failure = await pendingDial.dial(for: client.number) {
            [dialer = dependencies.dialer, target = authorizer.spec.target] () async throws -> Connection in
            try await dialer.dial(target) { route in
                usesNetwork.store(route.isNetwork, ordering: .relaxed)
            }
        }
        if let connection = pendingDial.take() {
            let took = ContinuousClock.now - started
            let isNetwork = usesNetwork.load(ordering: .relaxed)
            var waiting = Optional(client)
            var stream = Optional(connection)
            let isAdopted = networkCutGeneration.withLock { count in
                guard !isNetwork || count == generation, let client = waiting.take(), let connection = stream.take()
                else { return false }
                metrics.connected(after: took)
                dependencies.relay.adopt(
                    client: client,
                    target: connection,
                    inspector: inspector,
                    observer: isNetwork ? network : metrics
                )
                return true
            }
            guard !isAdopted else { return await report(.connected) }
            if let client = waiting.take() { client.reset() }
            metrics.connectionClosed()
            metrics.connectionFailed(DialError(.forbidden, "its approval was revoked during the dial"))
        } else {
            client.reset()
            metrics.connectionClosed()
            guard let failure else { return }
            metrics.connectionFailed(failure)
            await report(.failed(failure, count))
        }
    }
}
