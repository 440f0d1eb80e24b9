import AccessControl
import HummingbirdCore
import Model

/// `/v1/access-requests`: a local process requests access, and an owner approves or denies the request.
enum AccessRequestRoutes {
    @Sendable static func create(_ request: APIRequest) async throws -> APIResponse {
        let spec = try await request.body(AccessRequestSpec.self)
        guard let credentials = await PeerCredentials(of: request.channel) else {
            throw Problem(.forbidden, "this request is accepted on the Unix socket only")
        }
        let (created, deviceCode) = try await request.services.accessStore.requests.create(
            spec,
            by: credentials.auditActor,
            isRunning: await credentials.processLiveness(on: request.channel)
        )
        return try .created(
            AccessRequestCreated(
                request: created,
                deviceCode: deviceCode.reveal(),
                intervalSeconds: AccessRequestService.pollInterval
            )
        )
    }

    @Sendable static func list(_ request: APIRequest) async throws -> APIResponse {
        try .json(ListResponse(await request.services.accessStore.requests.pending))
    }

    @Sendable static func poll(_ request: APIRequest) async throws -> APIResponse {
        let state = try await request.services.accessStore.requests.poll(
            try await request.body(AccessRequestPoll.self),
            by: request.principal.actor,
            from: request.principal.source
        )
        let status =
            switch state {
            case .waiting(let seconds): AccessRequestStatus(state: .pending, intervalSeconds: seconds)
            case .denied: AccessRequestStatus(state: .denied)
            case .granted(let grant, let token):
                AccessRequestStatus(state: .granted, granted: IssuedGrant(grant: grant, token: token.reveal()))
            }
        return try .json(status)
    }

    @Sendable static func approve(_ request: APIRequest) async throws -> APIResponse {
        let limits = request.hasBody ? try await request.body(AccessRequestLimits.self) : AccessRequestLimits()
        return try .json(
            try await request.services.accessStore.requests.approve(
                try request.parameter("userCode"),
                limits: limits,
                by: request.principal.actor,
                from: request.principal.source
            )
        )
    }

    @Sendable static func deny(_ request: APIRequest) async throws -> APIResponse {
        try .json(
            try await request.services.accessStore.requests.deny(
                try request.parameter("userCode"),
                by: request.principal.actor,
                from: request.principal.source
            )
        )
    }

    @Sendable static func unlock(_ request: APIRequest) async throws -> APIResponse {
        try await request.services.accessStore.requests.unlock()
        return .noContent
    }
}
