package import MCP
package import Model
package import AccessControl
package import Registry
package import Tunnels

/// What agents open tunnels through. They get no more than through the API, and for an endpoint that a person has not
/// approved nothing, whoever they run as: an agent's wish is no person's yes.
package struct AgentTunnels: TunnelProvider {
    private let registry: EndpointRegistry
    private let table: TunnelTable
    private let granted: TunnelPolicy
    private let pairing: AccessStore

    package init(registry: EndpointRegistry, table: TunnelTable, granted: TunnelPolicy, pairing: AccessStore) {
        self.registry = registry
        self.table = table
        self.granted = granted
        self.pairing = pairing
    }

    package func open(_ spec: TunnelSpec, for caller: AgentCaller) async throws -> Tunnel {
        guard let user = caller.user else {
            throw Problem(.forbidden, "the kernel does not say which user calls, so that nobody could use the tunnel")
        }
        switch spec.target {
        case .endpoint(let id): try await checkTrust(in: try await registry.endpoint(id))
        case .device:
            guard caller.seesAll else {
                throw Problem(.forbidden, "what was granted is about certain endpoints, and not about ports of phones")
            }
        }
        guard case .grant(let grant) = caller.caller else { return try await table.create(spec, owner: user) }
        let tunnels = try await granted.open(1, under: grant, isOwners: caller.isOwner) {
            [try await table.create(spec, owner: user)]
        }
        return tunnels[0]
    }

    package func tunnels(of caller: AgentCaller) async -> [Tunnel] {
        let all = await table.list()
        guard !caller.isOwner, case .grant(let grant) = caller.caller else { return all }
        let own = await granted.ids(of: grant)
        return all.filter { own.contains($0.id) }
    }

    package func close(_ id: String, of caller: AgentCaller) async throws {
        guard await tunnels(of: caller).contains(where: { $0.id == id }) else { throw TunnelError.noSuchTunnel(id) }
        try await table.remove(id)
        await granted.forget([id])
    }

    /// An endpoint that is nowhere now passes: it is looked at again when it is dialled.
    private func checkTrust(in endpoint: Endpoint) async throws {
        guard let refusal = ApprovalPolicy.refusal(of: endpoint, await pairing.approval(of: endpoint.id)) else {
            return
        }
        throw Problem(.forbidden, refusal.detail, next: refusal.next)
    }
}
