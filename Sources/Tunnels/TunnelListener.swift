import Model
import SystemIO

/// The listening side of a tunnel. The relay's event loop accepts, checks and connects its clients.
struct TunnelListener: Sendable {
    private let configuration: TunnelConfiguration
    private let holder: String?
    private let listeners: [Listener]
    private let dependencies: TunnelDependencies

    /// Creates the listener of a tunnel on its open sockets.
    init(for entry: TunnelEntry, on listeners: [Listener], dependencies: TunnelDependencies) {
        self.listeners = listeners
        self.dependencies = dependencies
        holder = entry.holder
        configuration = TunnelConfiguration(
            sockets: listeners.map { TunnelConfiguration.ListeningSocket(number: $0.number, address: $0.address) },
            spec: entry.spec,
            owner: entry.owner,
            ownerCheck: dependencies.ownerCheck,
            limits: dependencies.limits,
            metrics: entry.metrics,
            report: { [id = entry.id] in dependencies.events.continuation.yield((id, $0)) }
        )
    }

    /// The addresses that the tunnel listens on.
    var addresses: [SocketAddress] { listeners.map(\.address) }

    /// Accepts clients until `close()`.
    func start() { dependencies.relay.listen(configuration) }

    /// Sets the facts for later connections; nil if each connection has to look the target up.
    func setTarget(_ target: TargetSnapshot?) { dependencies.relay.setTarget(target, of: configuration.metrics) }

    /// Closes the listeners and all connections. When it returns, the address is free and no more bytes are relayed.
    func close() async {
        await dependencies.relay.stopListening(configuration.metrics)
        for listener in listeners { listener.close() }
        await dependencies.relay.closeConnections(of: configuration.metrics)
    }

    /// Closes the connections over revoked routes. When it returns, none of them relays another byte.
    ///
    /// A client with a dial in progress is reset if the dial used such a route.
    func closeConnections(over routes: RevokedRoutes) async {
        await dependencies.relay.closeConnections(of: configuration.metrics, over: routes)
    }

    /// Plans the target's routes again, and connects for a client that the event loop could not connect.
    ///
    /// - Throws: `DialError`, which the client's connection has then; `CancellationError` if the client is gone.
    func dial(_ request: DialRequest) async throws {
        do {
            dependencies.relay.dialed(request.token, .success(try await request.run { try await connect(request) }))
        } catch {
            let failure = error as? DialError ?? DialError(.failed, "the target could not be reached: \(error)")
            // After a cancellation too: nothing happens if the client is gone.
            dependencies.relay.dialed(request.token, .failure(failure))
            if error is CancellationError { throw error }
            throw failure
        }
    }

    private func connect(_ request: DialRequest) async throws -> RelayTarget {
        let (target, owner) = (configuration.spec.target, configuration.owner)
        if let refusal = await dependencies.policy?.check(of: target, for: holder, owner: owner)() { throw refusal }
        let snapshot = try await dependencies.planner.snapshot(
            of: target,
            for: TunnelOwner(user: owner, holder: holder)
        )
        var plans = snapshot.plans
        if let racing = request.racing { plans.removeAll { $0.route == racing } }
        guard let best = plans.first else { throw DialError(.noRoute, "the target has no other route") }
        // The failure says nothing about a route that has changed since.
        let isSame = request.attempt.map { $0.route == best.route } == true
        return try await dependencies.relay.connect(plans, after: isSame ? request.attempt?.failure : nil)
    }
}
