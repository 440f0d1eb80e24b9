package import AccessControl
package import MCP
package import Model
package import Registry
package import Tunnels

/// Which tunnels were opened under which grants; they end with them. One grant has some of all tunnels, and not all.
///
/// Not kept: a tunnel of a grant lives as long as the grant, and no longer than the broker.
package actor TunnelPolicy {
    /// Tunnels of one grant at once.
    static let limit = 64

    private let table: TunnelTable
    private let pairing: AccessStore
    private var uses: [String: GrantSession] = [:]
    /// How many are being opened, by grant.
    private var opening: [String: Int] = [:]

    package init(table: TunnelTable, pairing: AccessStore) {
        self.table = table
        self.pairing = pairing
    }

    /// Opens tunnels and puts them under a grant. An owner's may have as many as there can be.
    ///
    /// - Throws: `Problem` when the grant has its part, whatever opening throws, and what `adopt` does.
    func open(
        _ count: Int,
        under grant: String,
        isOwners: Bool = false,
        _ make: @escaping @Sendable () async throws -> [Tunnel]
    ) async throws -> [Tunnel] {
        guard isOwners || ids(of: grant).count + opening[grant, default: 0] + count <= Self.limit else {
            throw Problem(
                .limit,
                "a grant may have \(Self.limit) tunnels at once, and \(grant) would have more",
                next: "close one that is not needed any more"
            )
        }
        opening[grant, default: 0] += count
        defer {
            let left = opening[grant, default: count] - count
            opening[grant] = left == 0 ? nil : left
        }
        // Registered with the grant before anything listens: whoever ends the grant waits until nothing does any more.
        return try await pairing.withUse(of: grant) {
            let tunnels = try await make()
            try await self.adopt(tunnels.map(\.id), under: grant)
            return tunnels
        }
    }

    /// Puts tunnels under a grant. When the grant has ended in the meantime, they are removed.
    ///
    /// - Throws: `AccessError.refused` in that case.
    private func adopt(_ ids: some Collection<String> & Sendable, under grant: String) async throws {
        do {
            for id in ids {
                let use = try pairing.open(under: grant) { [self] in await cut(id, of: grant) }
                uses[id] = use
            }
        } catch {
            for id in ids { try? await table.remove(id) }
            await forget(ids)
            throw error
        }
    }

    func ids(of grant: String) -> Set<String> { Set(uses.filter { $0.value.grant == grant }.keys) }

    /// They were removed otherwise.
    func forget(_ ids: some Collection<String> & Sendable) async {
        for id in ids {
            if let use = uses.removeValue(forKey: id) { pairing.close(use) }
        }
    }

    /// Of those that were removed in whatever way, and not through here.
    func forgetAll(but living: Set<String>) async { await forget(uses.keys.filter { !living.contains($0) }) }

    /// When this returns, not one more byte passes.
    ///
    /// A grant ends with a cut for each of its tunnels. The first that comes here takes all of them, so that the relay does it
    /// in one turn; the others wait behind it in the table, and find nothing.
    private func cut(_ id: String, of grant: String) async {
        let ids = ids(of: grant).union([id])
        await table.release(ids)
        for id in ids { uses[id] = nil }
    }
}

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
