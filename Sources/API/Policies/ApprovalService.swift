import AccessControl
import Model
import Registry
import ServiceLifecycle
import Tunnels

/// Approvals and secrets of endpoints: stored by pairing, shown in the list, and enforced on tunnels.
package struct ApprovalService: Service {
    let pairing: AccessStore
    let registry: EndpointRegistry
    let tunnels: TunnelTable

    /// Approves a network address of an endpoint, and accepts the server that answers there next. When it returns, the list
    /// says so. A cable or a configured address needs no approval; there only the server is accepted.
    ///
    /// - Throws: `AccessError`.
    func approve(_ endpoint: Endpoint, _ spec: ApprovalSpec, by caller: AuditActor, from origin: RequestSource)
        async throws
    {
        let needsNone = !endpoint.routes.isEmpty && endpoint.routes.allSatisfy { $0.route.host == nil }
        if !needsNone || spec.address != nil {
            try await pairing.approve(endpoint, at: spec.address, port: spec.port, by: caller, from: origin)
        }
        await registry.acceptServer(of: endpoint.id)
        await tell(endpoint.id)
    }

    /// Revokes the approval of an endpoint's network addresses, and forgets its secret. When it returns, nothing is sent
    /// any more over a route that needed the approval.
    ///
    /// - Throws: `AccessError.notSaved`, after which it is revoked until the broker stops.
    func withdraw(from id: EndpointID, by caller: AuditActor, from origin: RequestSource) async throws {
        let endpoint = try? await registry.endpoint(id)
        let id = endpoint?.id ?? id
        guard pairing.trust(of: id) != .none else { return }
        var failure: (any Error)?
        do { try await pairing.withdrawApproval(of: id, by: caller, from: origin) } catch { failure = error }
        await tell(id)
        // What the owner wrote down needs no other yes.
        if endpoint?.sources != [.config] { await cut(id) }
        if let failure { throw failure }
    }

    /// Keeps an app's own token for the approved routes of its endpoint, and where it is for an unseen launch, for that.
    ///
    /// - Throws: `AccessError`.
    func keep(
        _ secret: EndpointSecret,
        of endpoint: Endpoint,
        on port: UInt16?,
        isForUnseen: Bool,
        by caller: AuditActor,
        from origin: RequestSource
    ) async throws {
        try await pairing.setSecret(
            secret,
            of: endpoint,
            on: port,
            isForUnseen: isForUnseen,
            by: caller,
            from: origin
        )
        // On a cable the app is known by its token only, and an owner who gives it says which app is there.
        if endpoint.routes.allSatisfy({ $0.route.host == nil }) { await registry.acceptServer(of: endpoint.id) }
        await tell(endpoint.id)
    }

    /// Shows in the list every change that was made elsewhere: by an agent, or because a secret expired.
    package func run() async throws {
        for await id in await pairing.trustChanges().cancelOnGracefulShutdown() { await tell(id) }
    }

    /// Repeats until the list shows the stored state: of two changes at once, either may be the later one.
    private func tell(_ id: EndpointID) async {
        var told: EndpointTrust
        repeat {
            told = pairing.trust(of: id)
            await registry.setTrust(told, of: id)
        } while pairing.trust(of: id) != told
    }

    private func cut(_ id: EndpointID) async {
        var ids: Set<String> = []
        for tunnel in await tunnels.list() {
            guard case .endpoint(let target) = tunnel.spec.target else { continue }
            // It may have been made when the endpoint had another id.
            if target == id { ids.insert(tunnel.id) }
            if let endpoint = try? await registry.endpoint(target), endpoint.id == id { ids.insert(tunnel.id) }
        }
        await tunnels.sever(ids)
        await tunnels.reconsider()
    }
}
