import Hummingbird
import Model
import SystemIO
import Tunnels

/// `/v1/tunnels`. An owner has all of them; whoever holds a grant has those that it opened.
enum TunnelRoutes {
    @Sendable static func list(_ call: APIRequest) async throws -> Response {
        try call.answer(TunnelList(tunnels: await call.tunnels()))
    }

    @Sendable static func show(_ call: APIRequest) async throws -> Response { try call.answer(try await call.tunnel()) }

    @Sendable static func open(_ call: APIRequest) async throws -> Response {
        let spec = try await call.checked(try await call.body(TunnelSpec.self))
        let (table, user) = (call.broker.tunnels, call.visitor.user)
        let tunnels = try await call.open(1) { [try await table.create(spec, owner: user)] }
        return try call.answer(tunnels[0], status: .created)
    }

    /// Opens tunnels: all of them or none.
    @Sendable static func openAll(_ call: APIRequest) async throws -> Response {
        var specs: [TunnelSpec] = []
        for spec in try await call.body([TunnelSpec].self) { specs.append(try await call.checked(spec)) }
        let (table, user) = (call.broker.tunnels, call.visitor.user)
        let tunnels = try await call.open(specs.count) { [specs] in try await table.create(specs, owner: user) }
        return try call.answer(TunnelList(tunnels: tunnels), status: .created)
    }

    @Sendable static func remove(_ call: APIRequest) async throws -> Response {
        let tunnel = try await call.tunnel()
        try await call.broker.tunnels.remove(tunnel.id)
        await call.broker.grantedTunnels.forget([tunnel.id])
        return call.nothing
    }

    @Sendable static func removeAll(_ call: APIRequest) async throws -> Response {
        guard !call.visitor.isOwner else {
            let removed = try await call.broker.tunnels.removeAll()
            await call.broker.grantedTunnels.forgetAll(but: Set(await call.broker.tunnels.list().map(\.id)))
            return try call.answer(DeleteResponse(removed: removed))
        }
        let ids = Set(await call.tunnels().map(\.id))
        await call.broker.tunnels.release(ids)
        await call.broker.grantedTunnels.forget(ids)
        return try call.answer(DeleteResponse(removed: ids.count))
    }

    /// Opens tunnels and says first which; then why connections through them failed. They go when the caller does.
    @Sendable static func hold(_ call: APIRequest) async throws -> Response {
        var specs: [TunnelSpec] = []
        for spec in try await call.bodyOfHeldRequest([TunnelSpec].self) { specs.append(try await call.checked(spec)) }
        let (table, granted, user) = (call.broker.tunnels, call.broker.grantedTunnels, call.visitor.user)
        let held = try await call.open(specs.count) { [specs] in try await table.hold(specs, owner: user) }
        let ids = Set(held.map(\.id))
        call.aftermath.add {
            await table.release(ids)
            await granted.forget(ids)
        }
        return ServerSentEventStream.response(to: call.request) { events in
            try events.send("tunnels", held)
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
    /// Those of the caller.
    func tunnels() async -> [Tunnel] {
        let all = await broker.tunnels.list()
        guard !visitor.isOwner, let grant = visitor.grant else { return all }
        let own = await broker.grantedTunnels.ids(of: grant.id)
        return all.filter { own.contains($0.id) }
    }

    /// The tunnel in the path; one that is somebody else's is not there.
    fileprivate func tunnel() async throws -> Tunnel {
        let id = try parameter("id")
        guard let tunnel = await tunnels().first(where: { $0.id == id }) else { throw TunnelError.noSuchTunnel(id) }
        return tunnel
    }

    /// Opens tunnels, under the caller's grant if it has one.
    fileprivate func open(_ count: Int, _ make: @escaping @Sendable () async throws -> [Tunnel]) async throws
        -> [Tunnel]
    {
        guard let grant = visitor.grant else { return try await make() }
        return try await broker.grantedTunnels.open(count, under: grant.id, isOwners: visitor.isOwner, make)
    }

    /// What the caller may have of what it asked for. Who is no owner gets a tunnel for itself, on this machine, to what its
    /// grant is about, where nobody's is in the way.
    fileprivate func checked(_ spec: TunnelSpec) async throws -> TunnelSpec {
        if case .endpoint(let id) = spec.target, visitor.isOwner {
            // It need not be there yet.
            if let endpoint = try? await endpoint(id) { try await checkTrust(in: endpoint) }
        }
        var spec = spec
        if let grant = visitor.grant {
            // With the broker, the list of what is the grant's would go.
            spec.isKept = false
            if !visitor.isOwner { spec = try await narrowed(spec, grant) }
        }
        return spec
    }

    private func narrowed(_ spec: TunnelSpec, _ grant: Grant) async throws -> TunnelSpec {
        func refuse(_ what: String) -> Problem { Problem(.forbidden, "grant \(grant.id) does not allow \(what)") }
        guard visitor.user != nil else { throw refuse("a tunnel to a user whom the kernel does not name") }
        guard !spec.allowsAnyUser, !spec.allowsBrowsers else {
            throw refuse("a tunnel for other users or for web pages")
        }
        switch spec.local {
        case .tcp(nil, _): break
        case .tcp(let host?, let port)
        where SystemIO.SocketAddress(numeric: host, port: port)?.isLoopback ?? false: break
        case .tcp, .unix: throw refuse("a tunnel on \(spec.local), only on 127.0.0.1 and ::1")
        }
        switch spec.target {
        case .endpoint(let id): try await checkTrust(in: try await endpoint(id))
        case .device:
            guard visitor.seesAll else { throw refuse("ports of phones, only certain endpoints") }
        }
        return TunnelSpec(
            local: spec.local,
            target: spec.target,
            noRebind: true,
            isKept: false
        )
    }
}
