import AccessControl
import Hummingbird
import Model

/// `/v1/grants`.
enum GrantRoutes {
    @Sendable static func list(_ call: APIRequest) async throws -> Response {
        try call.answer(GrantList(grants: await call.grants()))
    }

    @Sendable static func show(_ call: APIRequest) async throws -> Response {
        let id = try call.grantID()
        guard let grant = await call.grants().first(where: { $0.id == id }) else { throw GrantRoutes.noSuchGrant }
        return try call.answer(grant)
    }

    @Sendable static func revoke(_ call: APIRequest) async throws -> Response {
        try await end(.one(try call.grantID()), call)
    }

    @Sendable static func revokeAll(_ call: APIRequest) async throws -> Response { try await end(.all, call) }

    /// Only for who has the grant's own token.
    @Sendable static func rotate(_ call: APIRequest) async throws -> Response {
        let spec = try await call.body(RotationSpec.self)
        guard let grant = call.visitor.grant, try call.grantID() == grant.id else { throw noSuchGrant }
        guard
            let text = RequestValidator.values(of: "Authorization", in: call.request.head).first.flatMap(
                Authenticator.bearer
            )
        else {
            throw AccessError.refused
        }
        let (renewed, token) = try await call.broker.pairing.rotate(
            try Token(text),
            grace: spec.grace ?? 0,
            from: call.visitor.origin
        )
        return try call.answer(IssuedGrant(grant: renewed, token: token.reveal()), status: .created)
    }

    @Sendable static func delegate(_ call: APIRequest) async throws -> Response {
        let spec = try await call.body(DelegationSpec.self)
        let id = try call.grantID()
        guard call.visitor.isOwner || call.visitor.grant?.id == id else { throw noSuchGrant }
        var terms = InviteTerms(
            spec.permissions,
            grantLifetime: spec.lifetime,
            binding: spec.user.map(GrantBinding.user)
        )
        terms.grantIdle = spec.idle ?? terms.grantIdle
        let (grant, token) = try await call.broker.pairing.delegate(
            under: id,
            to: spec.name,
            terms,
            from: call.visitor.origin
        )
        return try call.answer(IssuedGrant(grant: grant, token: token.reveal()), status: .created)
    }

    private static var noSuchGrant: Problem {
        Problem(.notFound, "no grant has that id, or it is not yours", next: "patchbay grants")
    }

    private static func end(_ what: RevocationTarget, _ call: APIRequest) async throws -> Response {
        let ended = try await call.broker.pairing.revoke(what, by: call.visitor.revoker, from: call.visitor.origin)
        return try call.answer(RevocationResult(ended: ended))
    }
}

extension APIRequest {
    /// The grant in the path; `self` is the caller's own.
    fileprivate func grantID() throws -> String {
        let text = try parameter("id")
        guard text == "self" else { return text }
        guard let grant = visitor.grant else {
            throw Problem(.notFound, "you showed no token, so there is no grant of your own", next: "patchbay grants")
        }
        return grant.id
    }

    /// All of them for an owner; the caller's own and everything under it for others.
    fileprivate func grants() async -> [Grant] {
        let all = await broker.pairing.grants
        guard !visitor.isOwner, let own = visitor.grant else { return all }
        var family: Set<String> = [own.id]
        var isGrowing = true
        while isGrowing {
            let children = all.lazy.filter { $0.parent.map(family.contains) ?? false }.map(\.id)
            let larger = family.union(children)
            isGrowing = larger.count > family.count
            family = larger
        }
        return all.filter { family.contains($0.id) }
    }
}
