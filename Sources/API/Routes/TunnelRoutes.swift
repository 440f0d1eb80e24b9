import AccessControl
import HummingbirdCore
import Model
import SystemIO
import Tunnels

/// `/v1/tunnels`. An owner sees all tunnels. The holder of a grant sees the tunnels that the grant opened.
enum TunnelRoutes {
    @Sendable static func list(_ request: APIRequest) async throws -> APIResponse {
        try .json(ListResponse(await request.tunnels()))
    }

    @Sendable static func show(_ request: APIRequest) async throws -> APIResponse {
        try .json(try await request.tunnel())
    }

    @Sendable static func create(_ request: APIRequest) async throws -> APIResponse {
        let spec = try await request.authorized(try await request.body(TunnelSpec.self))
        let (table, user, holder) = request.tunnelOwner
        let tunnels = try await request.open(1) { [try await table.create(spec, owner: user, holder: holder)] }
        return try .created(tunnels[0])
    }

    /// Opens several tunnels, all or none.
    @Sendable static func createAll(_ request: APIRequest) async throws -> APIResponse {
        var specs: [TunnelSpec] = []
        for spec in try await request.body([TunnelSpec].self) { specs.append(try await request.authorized(spec)) }
        let (table, user, holder) = request.tunnelOwner
        let tunnels = try await request.open(specs.count) { [specs] in
            try await table.create(specs, owner: user, holder: holder)
        }
        return try .created(ListResponse(tunnels))
    }

    @Sendable static func remove(_ request: APIRequest) async throws -> APIResponse {
        let tunnel = try await request.tunnel()
        try await request.services.tunnels.remove(tunnel.id)
        await request.services.tunnelPolicy.unregister([tunnel.id])
        return .noContent
    }

    @Sendable static func removeAll(_ request: APIRequest) async throws -> APIResponse {
        guard !request.principal.isOwner else {
            let removed = try await request.services.tunnels.removeAll()
            await request.services.tunnelPolicy.prune(keeping: Set(await request.services.tunnels.list().map(\.id)))
            return try .json(DeleteResponse(deletedCount: removed))
        }
        let ids = Set(await request.tunnels().map(\.id))
        await request.services.tunnels.removeEphemeral(ids)
        await request.services.tunnelPolicy.unregister(ids)
        return try .json(DeleteResponse(deletedCount: ids.count))
    }

    /// Opens tunnels that are removed when the client disconnects. Streams the tunnels, and then the reason of each
    /// failed connection.
    @Sendable static func createEphemeral(_ request: APIRequest) async throws -> APIResponse {
        try request.requireStreamPlace()
        var specs: [TunnelSpec] = []
        for spec in try await request.streamingRequestBody([TunnelSpec].self) {
            specs.append(try await request.authorized(spec))
        }
        let ((table, user, holder), tunnelPolicy) = (request.tunnelOwner, request.services.tunnelPolicy)
        let tunnels = try await request.open(specs.count) { [specs] in
            try await table.createEphemeral(specs, owner: user, holder: holder)
        }
        let ids = Set(tunnels.map(\.id))
        request.cleanup.add {
            await table.removeEphemeral(ids)
            await tunnelPolicy.unregister(ids)
        }
        return ServerSentEventStream.response(to: request.httpRequest) { events in
            try events.send("tunnels", tunnels)
            for await event in await table.events() {
                guard case .connectionFailed(let tunnel, let failure) = event, ids.contains(tunnel) else { continue }
                try events.send(
                    "failure",
                    TunnelConnectionFailure(tunnel: tunnel, reason: failure.reason, detail: failure.description)
                )
            }
        }
    }
}

extension APIRequest {
    /// Returns the tunnels of the principal.
    func tunnels() async -> [Tunnel] {
        let all = await services.tunnels.list()
        guard !principal.isOwner else { return all }
        guard let grant = principal.grant else { return [] }
        let own = await services.tunnelPolicy.ids(of: grant.id)
        return all.filter { own.contains($0.id) }
    }

    /// Returns the tunnel of the path. A tunnel of another client is reported as missing.
    fileprivate func tunnel() async throws -> Tunnel {
        let id = try parameter("id")
        guard let tunnel = await tunnels().first(where: { $0.id == id }) else { throw TunnelError.noSuchTunnel(id) }
        return tunnel
    }

    /// The table, and the owner of the principal's new tunnels.
    fileprivate var tunnelOwner: (TunnelTable, user: UInt32?, holder: String?) {
        (services.tunnels, principal.user, principal.leaseHolder.agentKey)
    }

    /// Opens tunnels, and registers them with the principal's grant if there is one.
    fileprivate func open(_ count: Int, _ make: @escaping @Sendable () async throws -> [Tunnel]) async throws
        -> [Tunnel]
    {
        guard let grant = principal.grant else { return try await make() }
        return try await services.tunnelPolicy.open(count, under: grant.id, isOwner: principal.isOwner, make)
    }

    /// Returns the spec as far as the principal may open the tunnel.
    ///
    /// Without full access, the tunnel is for the client's own user, on loopback, and to an endpoint of the grant. Such
    /// a tunnel replaces no other tunnel.
    fileprivate func authorized(_ spec: TunnelSpec) async throws -> TunnelSpec {
        var spec = spec
        spec.target = local(spec.target)
        if principal.grant != nil {
            // The tunnels of a grant are not persisted, so this one must not be, either.
            spec.persistent = false
            if !principal.isOwner { spec = try restricted(spec) }
        }
        try await authorizeConnection(to: spec.target)
        return spec
    }

    /// Throws unless the principal may connect to the target now.
    func authorizeConnection(to target: TunnelTarget) async throws {
        switch target {
        case .endpoint(let id) where principal.isOwner:
            // The endpoint need not exist yet.
            if let endpoint = try? await endpoint(id) { try await requireConnectable(endpoint) }
        case .endpoint(let id):
            let endpoint = try await endpoint(id)
            try principal.requireTunnelScopes(for: endpoint)
            try await requireConnectable(endpoint)
        case .device:
            guard principal.isOwner || principal.canSeeAllEndpoints else {
                throw notAllowed("the ports of devices, only certain endpoints")
            }
        }
        try await services.leasePolicy.authorize(target, for: principal)
    }

    /// Throws if no tunnel can lead to the endpoint, or if no route of the endpoint is approved.
    private func requireConnectable(_ endpoint: Endpoint) async throws {
        if let refusal = endpoint.tunnelRefusal {
            throw Problem(.conflict, refusal, hint: "patchbay debug \(endpoint.id)")
        }
        try await requireApproval(of: endpoint)
    }

    private func restricted(_ spec: TunnelSpec) throws -> TunnelSpec {
        guard principal.user != nil else { throw notAllowed("a tunnel without a user that the kernel reports") }
        guard !spec.allowAnyUser, !spec.allowBrowsers else {
            throw notAllowed("a tunnel for other users or for web pages")
        }
        switch spec.local {
        case .tcp(nil, _): break
        case .tcp(let host?, let port)
        where SystemIO.SocketAddress(numeric: host, port: port)?.isLoopback ?? false: break
        case .tcp, .unix: throw notAllowed("a tunnel on \(spec.local), only on 127.0.0.1 and ::1")
        }
        return TunnelSpec(
            local: spec.local,
            target: spec.target,
            noRebind: true,
            persistent: false
        )
    }

    /// Returns a target without the name of this broker's own host.
    private func local(_ target: TunnelTarget) -> TunnelTarget {
        guard case .endpoint(let id) = target else { return target }
        return .endpoint(local(id))
    }

    private func notAllowed(_ action: String) -> Problem {
        let grant = principal.member.map { "the grant of \"\($0.name)\"" } ?? "grant \(principal.grant?.id ?? "?")"
        return Problem(.forbidden, "\(grant) does not allow \(action)")
    }
}
