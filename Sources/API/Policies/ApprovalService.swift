import AccessControl
package import Model
import Registry
import ServiceLifecycle
import Tunnels

/// Approves endpoints and stores their secrets. `AccessStore` persists both, the registry shows them, and tunnels
/// enforce them.
package struct ApprovalService: Service {
    let accessStore: AccessStore
    let registry: EndpointRegistry
    let disconnector: EndpointDisconnector

    /// Approves a network address of an endpoint, and accepts the server that answers there next. The registry shows
    /// the approval before this function returns.
    ///
    /// USB routes and configured addresses need no approval. For them, only the server is accepted. The address may
    /// also be that of an endpoint that is possibly the same app. Both are then one endpoint, because the owner says so.
    ///
    /// - Throws: `AccessError`; `Problem` if the address is approved for another endpoint.
    func approve(_ endpoint: Endpoint, _ spec: ApprovalSpec, by actor: AuditActor, from source: RequestSource)
        async throws
    {
        let needsNone = !endpoint.routes.isEmpty && endpoint.routes.allSatisfy { $0.route.machine == nil }
        if !needsNone || spec.address != nil {
            try await accessStore.approvals.approve(
                try await adding(routesAt: spec.address, to: endpoint),
                at: spec.address,
                port: spec.port,
                by: actor,
                from: source
            )
        }
        await registry.acceptServer(of: endpoint.id)
        await publishApproval(endpoint.id)
    }

    /// Adds the routes at an address to a cabled endpoint, from the endpoints that are possibly the same app.
    private func adding(routesAt address: String?, to endpoint: Endpoint) async throws(Problem) -> Endpoint {
        guard let address, endpoint.sources.contains(where: \.isPhone),
            !endpoint.routes.contains(where: { $0.route.address == address })
        else { return endpoint }
        var joined = endpoint
        for id in endpoint.possiblySameAs ?? [] {
            guard let other = try? await registry.endpoint(id) else { continue }
            let routes = other.routes.filter { $0.route.machine != nil && $0.route.address == address }
            guard routes.isEmpty || !accessStore.approvals.trust(of: other.id).isTrusted else {
                throw Problem(
                    .conflict,
                    "\(address) is approved for \(other.id), and an approval never moves to another endpoint",
                    hint: "patchbay unapprove \(other.id), then patchbay approve \(endpoint.id) --address \(address)"
                )
            }
            joined.routes += routes
        }
        return joined
    }

    /// Denies network addresses of an endpoint (`EndpointApprovalService.deny`). When this function returns, no more bytes
    /// are sent to them.
    ///
    /// - Throws: `AccessError`. After `.notSaved`, the denial holds only until the broker stops.
    func deny(_ endpoint: Endpoint, _ spec: DenialSpec, by actor: AuditActor, from source: RequestSource) async throws {
        // A new approval has a new ID, so an approval with the same ID was not revoked meanwhile.
        let approval = accessStore.approvals.trust(of: endpoint.id).approval?.id
        try await end(endpoint.id, endpoint, unless: { approval == nil || $0.approval?.id == approval }) {
            try await accessStore.approvals.deny(endpoint, at: spec.address, by: actor, from: source)
        }
    }

    /// Revokes the approval of an endpoint's network addresses, and deletes its secret. With `isRemoved`, also forgets its
    /// denial. When this function returns, no more bytes are sent over a route that needed the approval.
    ///
    /// - Throws: `AccessError.notSaved`. The approval is then revoked only until the broker stops.
    func revokeApproval(
        of id: EndpointID,
        isRemoved: Bool = false,
        by actor: AuditActor,
        from source: RequestSource
    ) async throws {
        let endpoint = try? await registry.endpoint(id)
        let id = endpoint?.id ?? id
        guard accessStore.approvals.trust(of: id) != .none else { return }
        try await end(id, endpoint, unless: { _ in false }) {
            try await accessStore.approvals.revoke(of: id, isRemoved: isRemoved, by: actor, from: source)
        }
    }

    /// Changes the approval of an endpoint, and closes its connections unless the approval holds after the change.
    private func end(
        _ id: EndpointID,
        _ endpoint: Endpoint?,
        unless holds: (EndpointTrust) -> Bool,
        by change: () async throws -> Void
    ) async throws {
        var failure: (any Error)?
        do { try await change() } catch { failure = error }
        let isEnded = !holds(accessStore.approvals.trust(of: id))
        await publishApproval(id)
        // A static endpoint needs no other approval.
        if isEnded, let endpoint, endpoint.sources != [.config] {
            await disconnector.disconnect(endpoint, over: .network)
        }
        if let failure { throw failure }
    }

    /// Ends every use of an endpoint over its configured address, which a reload has removed from the configuration.
    package func configurationEnded(of endpoint: Endpoint) async {
        await disconnector.disconnect(endpoint, over: .addresses(endpoint.configuredRoutes))
    }

    /// Stores an app's own token for the approved routes of its endpoint, or for `route` alone. With `isForUnseen`, the
    /// token is also for a launch that was not seen yet.
    ///
    /// - Throws: `AccessError`.
    func storeSecret(
        _ secret: EndpointSecret,
        of endpoint: Endpoint,
        over route: Route? = nil,
        on port: UInt16? = nil,
        isForUnseen: Bool = false,
        by actor: AuditActor,
        from source: RequestSource
    ) async throws {
        try await accessStore.secrets.set(
            secret,
            of: endpoint,
            over: route,
            on: port,
            isForUnseen: isForUnseen,
            by: actor,
            from: source
        )
        // On a USB route, only the token identifies the app. An owner who sets the token also accepts the server.
        if endpoint.routes.allSatisfy({ $0.route.machine == nil }) { await registry.acceptServer(of: endpoint.id) }
        await publishApproval(endpoint.id)
    }

    /// Publishes every change that another component made, such as an agent's pairing or the expiry of a secret.
    package func run() async throws {
        for await id in accessStore.approvals.changes().cancelOnGracefulShutdown() { await publishApproval(id) }
    }

    /// Publishes the stored state to the registry. Repeats until both agree, because two changes may be published at
    /// the same time.
    private func publishApproval(_ id: EndpointID) async {
        var published: EndpointTrust
        repeat {
            published = accessStore.approvals.trust(of: id)
            await registry.setTrust(published, of: id)
        } while accessStore.approvals.trust(of: id) != published
    }
}
