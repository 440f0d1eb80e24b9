import AccessControl
import Hummingbird
import Model
import QR

/// `/v1/invites`.
enum InviteRoutes {
    @Sendable static func create(_ request: APIRequest) async throws -> Response {
        let spec = try await request.body(InviteSpec.self)
        let (invite, token) = try await request.services.accessStore.invites.create(
            spec,
            by: request.principal.actor,
            from: request.principal.source
        )
        let pairing = request.services.tcpPort.map { "PATCHBAY:1:127.0.0.1:\($0)::\(token.reveal())" }
        return try request.json(
            IssuedInvite(
                invite: invite,
                token: token.reveal(),
                pairing: pairing,
                // The QR code is only in this response. The URL of a separate download would contain the secret, or
                // require storing it.
                qr: spec.qr == true ? try pairing.map { try QRCode($0).svg() } : nil
            ),
            status: .created
        )
    }

    /// Lists the invites. With a grant, only the invites that the grant created are listed.
    @Sendable static func list(_ request: APIRequest) async throws -> Response {
        let all = await request.services.accessStore.invites.list
        let own = request.principal.isOwner ? all : all.filter { $0.createdBy == request.principal.actor }
        return try request.json(ListResponse(own))
    }

    @Sendable static func revoke(_ request: APIRequest) async throws -> Response {
        let ended = try await request.services.accessStore.grants.revoke(
            .one(try request.parameter("id")),
            by: request.principal.revoker,
            from: request.principal.source
        )
        return try request.json(RevocationResult(ended: ended))
    }

    @Sendable static func redeem(_ request: APIRequest) async throws -> Response {
        let spec = try await request.body(RedemptionSpec.self)
        let (grant, token) = try await request.services.accessStore.invites.redeem(
            spec,
            from: request.principal.source
        )
        return try request.json(IssuedGrant(grant: grant, token: token.reveal()), status: .created)
    }
}

extension Principal {
    /// The actor of a revocation. A request with an owner's own grant acts as the broker, because the grant alone may
    /// revoke less.
    var revoker: AuditActor { isOwner && grant != nil ? .broker : actor }
}
