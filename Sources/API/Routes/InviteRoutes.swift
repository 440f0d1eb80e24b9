import AccessControl
import FoundationEssentials
import Hummingbird
import Model
import QR

/// `/v1/invites`.
enum InviteRoutes {
    @Sendable static func create(_ call: APIRequest) async throws -> Response {
        let spec = try await call.body(InviteSpec.self)
        var terms = InviteTerms(spec.permissions, binding: spec.user.map(GrantBinding.user))
        terms.uses = spec.uses ?? terms.uses
        terms.lifetime = spec.lifetime ?? terms.lifetime
        terms.grantLifetime = spec.grantLifetime
        terms.grantIdle = spec.grantIdle ?? terms.grantIdle
        let (invite, token) = try await call.broker.pairing.invite(
            terms,
            by: call.visitor.caller,
            from: call.visitor.origin
        )
        let pairing = try call.broker.port.map { port in
            try PairingString(host: "127.0.0.1", port: port, pin: nil, invite: token).reveal()
        }
        return try call.answer(
            IssuedInvite(
                invite: invite,
                token: token.reveal(),
                pairing: pairing,
                // In this answer or nowhere: an address to fetch it from would have to hold the secret, or to keep it.
                qr: spec.qr == true ? try pairing.map { try QRCode($0).svg() } : nil
            ),
            status: .created
        )
    }

    /// A grant sees those that were made under it.
    @Sendable static func list(_ call: APIRequest) async throws -> Response {
        let all = await call.broker.pairing.invites
        let own = call.visitor.isOwner ? all : all.filter { $0.createdBy == call.visitor.caller }
        return try call.answer(InviteList(invites: own))
    }

    @Sendable static func revoke(_ call: APIRequest) async throws -> Response {
        let ended = try await call.broker.pairing.revoke(
            .one(try call.parameter("id")),
            by: call.visitor.revoker,
            from: call.visitor.origin
        )
        return try call.answer(RevocationResult(ended: ended))
    }

    @Sendable static func redeem(_ call: APIRequest) async throws -> Response {
        let spec = try await call.body(RedemptionSpec.self)
        let (grant, token) = try await call.redeem(
            spec.token,
            Redemption(client: Data(spec.client.utf8), name: spec.name, permissions: spec.permissions)
        )
        return try call.answer(IssuedGrant(grant: grant, token: token.reveal()), status: .created)
    }
}

extension APIRequest {
    /// Spends an invite; whatever is wrong with it is the one refusal.
    func redeem(_ text: String, _ redemption: Redemption) async throws -> (Grant, Token) {
        guard let invite = try? Token(text) else { throw try await broker.pairing.refuseGarbage(from: visitor.origin) }
        return try await broker.pairing.redeem(invite, for: redemption, from: visitor.origin)
    }
}

extension Principal {
    /// In whose name something ends: what an owner's own grant may not end, the owner may.
    var revoker: AuditActor { isOwner && grant != nil ? .broker : caller }
}
