import AccessControl
import HummingbirdCore
import Model

/// `/v1/grants`.
enum GrantRoutes {
    /// Creates a grant for the clients of a new unix socket.
    @Sendable static func create(_ request: APIRequest) async throws -> APIResponse {
        let spec = try await request.body(SocketGrantSpec.self)
        let grant = try await request.services.grantSockets.open(spec, for: request.principal)
        return try .created(grant)
    }

    @Sendable static func list(_ request: APIRequest) async throws -> APIResponse {
        try .json(ListResponse(await request.grants()))
    }

    @Sendable static func show(_ request: APIRequest) async throws -> APIResponse {
        let id = try request.grantID()
        guard let grant = await request.grants().first(where: { $0.id == id }) else {
            throw Problem(.notFound, "there is no grant of yours with that ID", hint: "patchbay grants")
        }
        return try .json(grant)
    }

    @Sendable static func revoke(_ request: APIRequest) async throws -> APIResponse {
        try await revoke(.one(try request.grantID()), request)
    }

    @Sendable static func revokeAll(_ request: APIRequest) async throws -> APIResponse {
        try await revoke(.all, request)
    }

    private static func revoke(_ target: RevocationTarget, _ request: APIRequest) async throws -> APIResponse {
        guard request.principal.member == nil else {
            throw Problem(.forbidden, "a client of another host has no grant of this broker")
        }
        let ended = try await request.services.accessStore.grants.revoke(
            target,
            by: request.principal.revoker,
            from: request.principal.source
        )
        return try .json(RevocationResult(ended: ended))
    }
}

extension APIRequest {
    /// Returns the grant ID of the path. `self` is the principal's own grant.
    fileprivate func grantID() throws -> String {
        let text = try parameter("id")
        guard text == "self" else { return text }
        guard let grant = principal.credential else {
            throw Problem(.notFound, "you sent no token, so you have no grant of your own", hint: "patchbay grants")
        }
        return grant.id
    }

    /// Returns all grants for an owner; otherwise the principal's own grant and its descendants.
    func grants() async -> [Grant] {
        let all = await services.accessStore.grants.list
        guard !principal.isOwner else { return all }
        guard let own = principal.grant else { return [] }
        var descendants: Set<String> = [own.id]
        var isGrowing = true
        while isGrowing {
            let children = all.lazy.filter { $0.parent.map(descendants.contains) ?? false }.map(\.id)
            let larger = descendants.union(children)
            isGrowing = larger.count > descendants.count
            descendants = larger
        }
        return all.filter { descendants.contains($0.id) }
    }
}
