import AccessControl
import Apps
import HTTPTypes
import HummingbirdCore
import Model
import Registry

/// `/v1/approvals` and `/v1/denials`, and the approval, the denial and the secret of one endpoint.
enum ApprovalRoutes {
    @Sendable static func list(_ request: APIRequest) async throws -> APIResponse {
        try .json(ListResponse(await request.services.accessStore.approvals.list))
    }

    @Sendable static func listDenials(_ request: APIRequest) async throws -> APIResponse {
        try .json(ListResponse(await request.services.accessStore.approvals.denials))
    }

    @Sendable static func deny(_ request: APIRequest) async throws -> APIResponse {
        let endpoint = try await request.endpoint()
        let spec = try await request.body(DenialSpec.self)
        let principal = request.principal
        try await request.services.approvalService.deny(endpoint, spec, by: principal.actor, from: principal.source)
        return try .json(try await request.endpoint())
    }

    @Sendable static func approve(_ request: APIRequest) async throws -> APIResponse {
        let endpoint = try await request.endpoint()
        let spec = try await request.body(ApprovalSpec.self)
        try await request.services.approvalService.approve(
            endpoint,
            spec,
            by: request.principal.actor,
            from: request.principal.source
        )
        return try .json(try await request.endpoint())
    }

    @Sendable static func revoke(_ request: APIRequest) async throws -> APIResponse {
        let services = request.services
        if let endpoint = try? await services.registry.endpoint(try request.endpointID()),
            services.accessStore.approvals.trust(of: endpoint.id).approval == nil
        {
            try await services.registrations.requireNoRegistration(of: endpoint, toDo: "it has no approval to revoke")
        }
        try await services.approvalService.revokeApproval(
            of: try request.endpointID(),
            by: request.principal.actor,
            from: request.principal.source
        )
        return .noContent
    }

    static let trialHeader = APIRoute.ResponseHeader(
        name: SecretTrial.header,
        values: SecretTrial.allCases.map(\.rawValue),
        summary: "The answer of the running app to the token"
    )

    @Sendable static func setSecret(_ request: APIRequest) async throws -> APIResponse {
        let spec = try await request.body(EndpointSecretSpec.self)
        let endpoint = try await request.endpoint()
        let trial = try await storeSecret(spec, of: endpoint, by: request.principal.actor, request)
        var headers = HTTPFields()
        if let name = HTTPField.Name(SecretTrial.header) { headers[name] = trial.rawValue }
        return .response(Response(status: .noContent, headers: headers))
    }

    /// Stores a token that an app sends itself: as an owner, with a grant for secrets, or with an invite.
    @Sendable static func postSecret(_ request: APIRequest) async throws -> APIResponse {
        let spec = try await request.body(EndpointSecretSpec.self)
        if let invite = spec.invite {
            try await storeSecret(spec, with: invite, request)
            return .noContent
        }
        switch request.principal.role {
        case .owner: break
        case .grant where request.principal.isOwner: break
        case .grant(let grant):
            // The scope comes first, so that a grant without it learns nothing of endpoints.
            guard grant.permissions.allow(.secretUse),
                grant.permissions.allow(.secretUse, on: try await request.endpoint(), of: request.principal.host)
            else {
                throw Problem(.forbidden, "grant \(grant.id) does not allow \(Scope.secretUse.rawValue)")
            }
        case .member(let client):
            throw Problem(
                .forbidden,
                "a client of another host cannot store a token here",
                hint: "run it on this host instead of \(client.host)"
            )
        case .localUser, .anonymous: throw AccessError.refused
        }
        try await storeSecret(spec, of: try await request.endpoint(), by: request.principal.actor, request)
        return .noContent
    }

    @Sendable static func deleteSecret(_ request: APIRequest) async throws -> APIResponse {
        let wasThere = try await request.services.accessStore.secrets.delete(
            of: try request.endpointID(),
            by: request.principal.actor,
            from: request.principal.source
        )
        return try .json(DeleteResponse(deletedCount: wasThere ? 1 : 0))
    }

    /// Redeems an invite to store one secret. The resulting grant is revoked at once.
    private static func storeSecret(_ spec: EndpointSecretSpec, with invite: String, _ request: APIRequest) async throws
    {
        let id = try request.endpointID()
        let redemption = RedemptionSpec(
            token: invite,
            client: spec.client ?? invite,
            name: spec.name ?? SanitizedText("app")
        )
        let (grant, _) = try await request.services.accessStore.invites.redeem(
            redemption,
            by: request.principal.actor,
            from: request.principal.source,
            key: request.principal.key
        )
        let grants = request.services.accessStore.grants
        do {
            let endpoint = try await request.services.registry.endpoint(id)
            guard grant.permissions.allow(.secretUse, on: endpoint) else {
                throw Problem(.forbidden, "that invite is not for the secret of this endpoint")
            }
            try await storeSecret(spec, of: endpoint, by: .grant(grant.id), request)
        } catch {
            try await grants.revoke(.one(grant.id), by: .grant(grant.id), from: request.principal.source)
            throw error
        }
        try await grants.revoke(.one(grant.id), by: .grant(grant.id), from: request.principal.source)
    }

    @discardableResult
    private static func storeSecret(
        _ spec: EndpointSecretSpec,
        of endpoint: Endpoint,
        by actor: AuditActor,
        _ request: APIRequest
    ) async throws -> SecretTrial {
        let secret = try EndpointSecret(spec.secret)
        // A token without a port is tried at the app. If the app rejects the token, the token may be for a later
        // launch.
        let isAccepted =
            spec.port == nil
            ? await request.services.mcp.apps.accepts(secret, at: endpoint, for: request.principal) : nil
        try await request.services.approvalService.storeSecret(
            secret,
            of: endpoint,
            on: spec.port,
            isForUnseen: spec.port == nil && isAccepted != true,
            by: actor,
            from: request.principal.source
        )
        return SecretTrial(isAccepted: isAccepted)
    }
}
