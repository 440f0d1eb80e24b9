package import AccessControl
import Agents
package import Model
package import Registry
package import Tunnels

/// The tunnels of each grant. A tunnel ends with its grant, and one grant cannot use up all tunnels.
///
/// The tunnels of grants are not persisted: they end when the grant ends or the broker stops.
package actor GrantTunnelService {
    /// The maximum number of tunnels per grant.
    static let maxTunnelsPerGrant = 64

    private let endpoints: any EndpointListing
    private let table: TunnelTable
    private let accessStore: AccessStore
    private let leasePolicy: LeasePolicy
    private var sessions: [String: GrantSession] = [:]
    /// The number of tunnels that are being opened, by grant.
    private var pendingCount: [String: Int] = [:]

    package init(
        endpoints: any EndpointListing,
        table: TunnelTable,
        accessStore: AccessStore,
        leasePolicy: LeasePolicy
    ) {
        self.leasePolicy = leasePolicy
        self.endpoints = endpoints
        self.table = table
        self.accessStore = accessStore
    }

    /// Opens tunnels and registers them with a grant. The limit does not apply to an owner's grant.
    ///
    /// - Throws: `Problem` at the limit of the grant, and errors of `make` and `register`.
    func open(
        _ count: Int,
        under grant: String,
        isOwner: Bool = false,
        _ make: @escaping @Sendable () async throws -> [Tunnel]
    ) async throws -> [Tunnel] {
        guard isOwner || ids(of: grant).count + pendingCount[grant, default: 0] + count <= Self.maxTunnelsPerGrant
        else {
            throw Problem(
                .limit,
                "a grant may have \(Self.maxTunnelsPerGrant) tunnels at once, and \(grant) would have more",
                hint: "remove a tunnel that is no longer needed"
            )
        }
        pendingCount[grant, default: 0] += count
        defer {
            let left = pendingCount[grant, default: count] - count
            pendingCount[grant] = left == 0 ? nil : left
        }
        // The session is registered before a tunnel listens, so that a revocation waits until the tunnels are closed.
        return try await accessStore.live.withSession(under: grant) {
            let tunnels = try await make()
            try await self.register(tunnels.map(\.id), under: grant)
            return tunnels
        }
    }

    /// Registers tunnels with a grant. If the grant has ended in the meantime, the tunnels are removed.
    ///
    /// - Throws: `AccessError.refused` if the grant has ended.
    private func register(_ ids: some Collection<String> & Sendable, under grant: String) async throws {
        do {
            for id in ids {
                sessions[id] = try accessStore.live.register(under: grant) { [self] in
                    await closeTunnels(with: id, of: grant)
                }
            }
        } catch {
            for id in ids { try? await table.remove(id) }
            await unregister(ids)
            throw error
        }
    }

    func ids(of grant: String) -> Set<String> { Set(sessions.filter { $0.value.grant == grant }.keys) }

    /// Unregisters tunnels that were removed by other code.
    func unregister(_ ids: some Collection<String> & Sendable) async {
        for id in ids {
            if let session = sessions.removeValue(forKey: id) { accessStore.live.unregister(session) }
        }
    }

    /// Unregisters every tunnel that no longer exists.
    func prune(keeping remaining: Set<String>) async {
        await unregister(sessions.keys.filter { !remaining.contains($0) })
    }

    /// Closes all tunnels of a grant. When this function returns, no more bytes are relayed.
    ///
    /// A revocation calls this function once per tunnel. The first call removes all tunnels of the grant in one step of
    /// the relay. The other calls wait for the first one and find no tunnels.
    private func closeTunnels(with id: String, of grant: String) async {
        let ids = ids(of: grant).union([id])
        await table.removeEphemeral(ids)
        for id in ids { sessions[id] = nil }
    }
}

/// Opens tunnels for MCP clients, with the same permissions as the HTTP API.
///
/// An endpoint always needs an approval, whatever user the client runs as. The request of an agent is not an approval.
extension GrantTunnelService: TunnelProvider {
    package func open(_ spec: TunnelSpec, for principal: Principal) async throws -> Tunnel {
        guard let user = principal.user else {
            throw Problem(
                .forbidden,
                "the kernel does not report the user of this client, so no process could use the tunnel"
            )
        }
        switch spec.target {
        case .endpoint(let id):
            let endpoint = try await endpoints.endpoint(id)
            try principal.requireTunnelScopes(for: endpoint)
            if let refusal = endpoint.tunnelRefusal {
                throw Problem(.conflict, refusal, hint: "call its tools instead: states, state, diff, shot, send_state")
            }
            try await requireApproval(of: endpoint)
        case .device:
            guard principal.canSeeAllEndpoints else {
                throw Problem(.forbidden, "the grant allows certain endpoints only, not the ports of devices")
            }
        }
        try await leasePolicy.authorize(spec.target, for: principal)
        let holder = principal.leaseHolder.agentKey
        guard case .grant(let grant) = principal.actor else {
            return try await table.create(spec, owner: user, holder: holder)
        }
        let tunnels = try await open(1, under: grant, isOwner: principal.isOwner) { [table] in
            [try await table.create(spec, owner: user, holder: holder)]
        }
        return tunnels[0]
    }

    package func tunnels(of principal: Principal) async -> [Tunnel] {
        let all = await table.list()
        guard !principal.isOwner else { return all }
        guard case .grant(let grant) = principal.actor else { return [] }
        let own = ids(of: grant)
        return all.filter { own.contains($0.id) }
    }

    package func close(_ id: String, of principal: Principal) async throws {
        guard await tunnels(of: principal).contains(where: { $0.id == id }) else { throw TunnelError.noSuchTunnel(id) }
        try await table.remove(id)
        await unregister([id])
    }

    /// Throws unless a route of the endpoint is approved. An endpoint without routes passes, and is checked again when
    /// a client connects.
    private func requireApproval(of endpoint: Endpoint) async throws {
        guard let refusal = ApprovalPolicy.refusal(of: endpoint, accessStore.approvals.trust(of: endpoint.id)) else {
            return
        }
        throw Problem(.forbidden, refusal.detail, hint: refusal.hint)
    }
}
