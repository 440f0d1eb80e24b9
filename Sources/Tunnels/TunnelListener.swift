import Model
import SystemIO

/// The listening side of a tunnel. The relay's event loop accepts, checks and connects its clients.
final class TunnelListener: Sendable {
    /// The listening sockets; they stay open until `close()`.
    let sockets: [Listener]
    let spec: TunnelSpec
    /// The UID of the tunnel's owner.
    let owner: UInt32
    let metrics: TunnelMetrics
    let ownerCheck: ClientOwnerCheck
    let limits: TunnelLimits

    private let id: String
    private let holder: String?
    private let dependencies: TunnelDependencies

    /// Creates the listener of a tunnel on its open sockets.
    init(for entry: TunnelEntry, on sockets: [Listener], dependencies: TunnelDependencies) {
        (self.sockets, self.dependencies) = (sockets, dependencies)
        (id, spec, owner, holder, metrics) = (entry.id, entry.spec, entry.owner, entry.holder, entry.metrics)
        (ownerCheck, limits) = (dependencies.ownerCheck, dependencies.limits)
    }

    /// The addresses that the tunnel listens on.
    var addresses: [SocketAddress] { sockets.map(\.address) }

    /// True if only processes of the owner may connect. A socket on a non-loopback address serves clients of other
    /// machines too.
    func checksOwner(on address: SocketAddress) -> Bool {
        (address.isLoopback || address.port == nil) && !spec.allowAnyUser
    }

    /// True if a client's first bytes are inspected. Browsers cannot connect to unix sockets.
    func inspects(on address: SocketAddress) -> Bool { address.port != nil && !spec.allowBrowsers }

    /// Accepts clients until `close()`.
    func start() { dependencies.relay.listen(self) }

    /// Sets the facts for later connections; nil if each connection has to look the target up.
    func setTarget(_ target: TargetSnapshot?) { dependencies.relay.setTarget(target, of: metrics) }

    /// Closes the sockets and all connections. When it returns, the address is free and no more bytes are relayed.
    func close() async {
        await dependencies.relay.stopListening(metrics)
        for socket in sockets { socket.close() }
        await dependencies.relay.closeConnections(of: metrics)
    }

    /// Closes the connections over revoked routes. When it returns, none of them relays another byte.
    ///
    /// A client whose connect is in progress is reset if such a route connects it.
    func closeConnections(over routes: RevokedRoutes) async {
        await dependencies.relay.closeConnections(of: metrics, over: routes)
    }

    /// Reports an event to the tunnel table. Called on the loop's thread.
    func report(_ event: TunnelEvent) { dependencies.events.continuation.yield((id, event)) }

    /// Returns the target's facts with the policy of the tunnel.
    ///
    /// - Throws: The reason why the target cannot be reached.
    func target() async throws(DialError) -> TargetSnapshot {
        let client = TunnelOwner(user: owner, holder: holder)
        var target = try await dependencies.planner.snapshot(of: spec.target, for: client)
        if let check = await policyCheck() { target.refusal = check }
        return target
    }

    private func policyCheck() async -> (@Sendable () -> DialError?)? {
        await dependencies.policy?.check(of: spec.target, for: holder, owner: owner)
    }

    /// Returns the reason if nothing listens at any route of the target; nil if something listens, or if that is unknown.
    ///
    /// Sends no byte to the target. Opens a connection only where nothing else tells, and closes it at once.
    func refusal() async -> DialError? {
        guard let target = try? await target(), target.refusal() == nil else { return nil }
        var first: DialError?
        for plan in target.plans {
            guard let refusal = await refusal(of: plan, target) else { return nil }
            first = first ?? refusal
        }
        return first
    }

    private func refusal(of plan: ConnectPlan, _ target: TargetSnapshot) async -> DialError? {
        switch plan.listenerCheck {
        case .none: return nil
        case .list(let read): return await read()
        case .connection(let isAllowed):
            guard isAllowed(), await target.allowsTrial() else { return nil }
            do {
                _ = try await dependencies.relay.connect([plan]).connection()
                return nil
            } catch {
                return (error as? DialError).flatMap { $0.reason == .refused ? $0 : nil }
            }
        }
    }

    /// Plans the target's routes again, and connects for a client that the event loop could not connect.
    ///
    /// - Throws: `DialError`, which the client's connection has then; `CancellationError` if the client is gone.
    func connect(_ request: FallbackRequest) async throws {
        do {
            let isConnected: Void? = try await withCancellation(when: request.waitForAbandonment) { [self] in
                let target = try await connectedTarget(for: request)
                dependencies.relay.fallbackEnded(request.handle, .success(target))
            }
            if isConnected == nil { throw CancellationError() }
        } catch {
            // After a cancellation too: nothing happens if the client is gone.
            let failure = error as? DialError ?? DialError(.failed, "\(error)")
            dependencies.relay.fallbackEnded(request.handle, .failure(failure))
            throw error
        }
    }

    private func connectedTarget(for request: FallbackRequest) async throws -> RelayTarget {
        if let refusal = await policyCheck()?() { throw refusal }
        let target = try await target()
        var plans = target.plans
        if let racing = request.racing { plans.removeAll { $0.route == racing } }
        guard let best = plans.first else { throw DialError(.noRoute, "the target has no other route") }
        if let absence = target.absence { return try await dependencies.relay.connect(plans, to: absence) }
        // The failure says nothing about a route that has changed since.
        let isSame = request.attempt.map { $0.route == best.route } == true
        return try await dependencies.relay.connect(plans, after: isSame ? request.attempt?.failure : nil)
    }
}

/// An event of the event loop for the state of a tunnel.
enum TunnelEvent: Sendable {
    /// The first connection since the last change of the target, by the snapshot with this generation.
    case connected(UInt64)
    /// A connection needs new plans.
    case fallback(FallbackRequest)
    /// Try again to listen on the tunnel's local address. Sent by the table.
    case retry
    /// The process is out of descriptors. Clients wait in the accept queue.
    case outOfDescriptors(String)
    /// The listening socket accepts no clients because of the error; nil if it accepts clients again.
    case listening(error: String?)
}
