import AccessControl
import FoundationEssentials
import Hummingbird
import MCP
import Model
import Registry

/// `/v1/approvals`, and what is said about one endpoint: a person's yes, and the app's own secret.
enum ApprovalRoutes {
    @Sendable static func list(_ call: APIRequest) async throws -> Response {
        try call.answer(ApprovalList(approvals: await call.broker.pairing.approvals))
    }

    @Sendable static func approve(_ call: APIRequest) async throws -> Response {
        let endpoint = try await call.endpoint()
        let spec = try await call.body(ApprovalSpec.self)
        try await call.broker.trust.approve(endpoint, spec, by: call.visitor.caller, from: call.visitor.origin)
        return try call.answer(try await call.endpoint())
    }

    @Sendable static func withdraw(_ call: APIRequest) async throws -> Response {
        try await call.broker.trust.withdraw(
            from: try call.endpointID(),
            by: call.visitor.caller,
            from: call.visitor.origin
        )
        return call.nothing
    }

    @Sendable static func setSecret(_ call: APIRequest) async throws -> Response {
        let spec = try await call.body(EndpointSecretSpec.self)
        try await keep(spec, of: try await call.endpoint(), by: call.visitor.caller, call)
        return call.nothing
    }

    /// An app tells its own: as an owner, with a grant that may use it, or with an invite that is redeemed on the way.
    @Sendable static func postSecret(_ call: APIRequest) async throws -> Response {
        let spec = try await call.body(EndpointSecretSpec.self)
        if let invite = spec.invite {
            try await keep(spec, with: invite, call)
            return call.nothing
        }
        switch call.visitor.standing {
        case .owner: break
        case .grant where call.visitor.isOwner: break
        case .grant(let grant):
            let endpoint = try await call.endpoint()
            guard grant.permissions.allow(.secretUse, on: endpoint) else {
                throw Problem(.forbidden, "grant \(grant.id) does not allow \(Scope.secretUse.rawValue)")
            }
        case .user, .stranger: throw AccessError.refused
        }
        try await keep(spec, of: try await call.endpoint(), by: call.visitor.caller, call)
        return call.nothing
    }

    @Sendable static func forgetSecret(_ call: APIRequest) async throws -> Response {
        let wasThere = try await call.broker.pairing.forgetSecret(
            of: try call.endpointID(),
            by: call.visitor.caller,
            from: call.visitor.origin
        )
        return try call.answer(DeleteResponse(removed: wasThere ? 1 : 0))
    }

    /// The grant of such an invite is for this one thing, and ends with it.
    private static func keep(_ spec: EndpointSecretSpec, with invite: String, _ call: APIRequest) async throws {
        let id = try call.endpointID()
        let client = spec.client.map { Data($0.utf8) } ?? Data(invite.utf8)
        let (grant, _) = try await call.redeem(
            invite,
            Redemption(client: client, name: spec.name ?? SanitizedText("app"))
        )
        let pairing = call.broker.pairing
        do {
            let endpoint = try await call.broker.registry.endpoint(id)
            guard grant.permissions.allow(.secretUse, on: endpoint) else {
                throw Problem(.forbidden, "that invite is not for the secret of this endpoint")
            }
            try await keep(spec, of: endpoint, by: .grant(grant.id), call)
        } catch {
            try await pairing.revoke(.one(grant.id), by: .grant(grant.id), from: call.visitor.origin)
            throw error
        }
        try await pairing.revoke(.one(grant.id), by: .grant(grant.id), from: call.visitor.origin)
    }

    private static func keep(
        _ spec: EndpointSecretSpec,
        of endpoint: Endpoint,
        by caller: AuditActor,
        _ call: APIRequest
    ) async throws {
        let secret = try EndpointSecret(spec.secret)
        // A token that names no port is tried: where the app does not take it now, it may be for a launch that comes.
        let isTaken =
            spec.port == nil
            ? await call.broker.agents.apps.takes(secret, at: endpoint, for: call.visitor.agent) : true
        try await call.broker.trust.keep(
            secret,
            of: endpoint,
            on: spec.port,
            isForUnseen: isTaken != true,
            by: caller,
            from: call.visitor.origin
        )
    }
}
