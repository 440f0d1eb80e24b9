import AccessControl
import HummingbirdCore
import Model

/// `/v1/invites`.
enum InviteRoutes {
    @Sendable static func create(_ request: APIRequest) async throws -> APIResponse {
        let spec = try await request.body(InviteSpec.self)
        if case .hosts(let hosts) = spec.permissions.selector { try request.require(hosts) }
        let address = try await PairingAddress(for: spec, request.services)
        let (invite, token) = try await request.services.accessStore.invites.create(
            spec,
            by: request.principal.actor,
            from: request.principal.source
        )
        let pairing = address?.string(with: token)
        return try .created(
            IssuedInvite(
                invite: invite,
                token: token.reveal(),
                pairing: pairing,
                addresses: address?.others,
                qr: try pairing.flatMap { try code($0, spec, asRows: request.query("qr") == "true") }
            )
        )
    }

    static let createQuery: [APIRoute.Query] = [
        .string("qr", "true to get the QR code as rows of modules, for a page that draws it")
    ]

    /// Returns the QR code that the request asked for. The code is only in this response: the URL of a separate download
    /// would contain the secret, or require storing it.
    private static func code(_ pairing: String, _ spec: InviteSpec, asRows: Bool) throws -> InviteQRCode? {
        if asRows { return .rows(try QRCode(pairing).rows) }
        return spec.qr == true ? .svg(try QRCode(pairing).svg()) : nil
    }

    /// Lists the invites. With a grant, only the invites that the grant created are listed.
    @Sendable static func list(_ request: APIRequest) async throws -> APIResponse {
        try .json(ListResponse(await visible(to: request)))
    }

    static func visible(to request: APIRequest) async -> [Invite] {
        let all = await request.services.accessStore.invites.list
        return request.principal.isOwner ? all : all.filter { $0.createdBy == request.principal.actor }
    }

    @Sendable static func revoke(_ request: APIRequest) async throws -> APIResponse {
        let ended = try await request.services.accessStore.grants.revoke(
            .one(try request.parameter("id")),
            by: request.principal.revoker,
            from: request.principal.source
        )
        return try .json(RevocationResult(ended: ended))
    }

    @Sendable static func redeem(_ request: APIRequest) async throws -> APIResponse {
        let spec = try await request.body(RedemptionSpec.self)
        let (grant, token): (Grant, Token)
        do {
            (grant, token) = try await request.services.accessStore.invites.redeem(
                spec,
                by: request.principal.actor,
                from: request.principal.source,
                key: request.principal.key
            )
        } catch AccessError.refused {
            // The hint for other requests, to join, would only repeat this request.
            throw Problem(.unauthorized, AccessError.refused.description, hint: Problem.newInviteHint)
        }
        let isKeyBound = if case .key = grant.binding { true } else { false }
        return try .created(IssuedGrant(grant: grant, token: isKeyBound ? nil : token.reveal()))
    }
}

extension Problem {
    /// The next step of a client whose invite is not accepted.
    static var newInviteHint: String { "ask for a new one: patchbay pair, or patchbay pair --remote" }
}

/// The address of this broker in a pairing string.
private struct PairingAddress {
    private let host: String
    private let port: UInt16
    private let pin: KeyPin?
    /// The addresses at which other machines may reach the broker; nil for an invite for this machine.
    let others: [String]?

    /// - Returns: Nil for an invite for this machine, if the broker has no TCP listener there.
    /// - Throws: `Problem` if other machines cannot reach the broker.
    init?(for spec: InviteSpec, _ services: APIServices) async throws {
        guard spec.use ?? .local != .local else {
            guard let port = services.tcpPort else { return nil }
            (host, self.port, pin, others) = ("127.0.0.1", port, nil, nil)
            return
        }
        let status = await services.remote.status()
        guard status.state != .off else {
            throw Problem(.conflict, "the remote listener is off", hint: "patchbay remote on")
        }
        guard status.state == .listening, let pin = status.pin, let port = status.port else {
            throw Problem(
                .unavailable,
                "the remote listener waits for \(status.address ?? "its address")\(status.problem.map { ": \($0)" } ?? "")",
                hint: "patchbay remote status"
            )
        }
        guard let host = spec.host ?? status.hosts.first else {
            throw Problem(
                .conflict,
                "this machine has no address that other machines may reach",
                hint: "name its address: patchbay pair --remote --host ADDRESS"
            )
        }
        guard PairingString.isHost(host) else {
            throw Problem(.badRequest, "\"\(SanitizedText(host))\" is not a host name or an address")
        }
        (self.host, self.port, self.pin, others) = (host, port, pin, status.reachable)
    }

    func string(with token: Token) -> String {
        PairingString(host: host, port: port, pin: pin, invite: token.reveal()).description
    }
}

extension Principal {
    /// The actor of a revocation. A request with an owner's own grant acts as the broker, because the grant alone may
    /// revoke less.
    var revoker: AuditActor { isOwner && grant != nil ? .broker : actor }
}
