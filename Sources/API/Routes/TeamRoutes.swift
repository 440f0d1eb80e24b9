import Hummingbird
import Model

/// `/v1/team`.
enum TeamRoutes {
    @Sendable static func show(_ request: APIRequest) async throws -> Response {
        try request.json(await request.services.team.status())
    }

    @Sendable static func create(_ request: APIRequest) async throws -> Response {
        let spec = try await request.body(TeamSpec.self)
        return try request.json(await request.services.team.create(spec), status: .created)
    }

    @Sendable static func join(_ request: APIRequest) async throws -> Response {
        let spec = try await request.body(TeamJoinSpec.self)
        return try request.json(await request.services.team.join(spec))
    }

    @Sendable static func leave(_ request: APIRequest) async throws -> Response {
        try await request.services.team.leave()
        return request.noContent
    }

    @Sendable static func invite(_ request: APIRequest) async throws -> Response {
        let spec = try await request.body(TeamInviteSpec.self)
        return try request.json(await request.services.team.invite(spec), status: .created)
    }

    /// Admits a host. The invite in the body is the authentication, because the host has no certificate yet.
    @Sendable static func admit(_ request: APIRequest) async throws -> Response {
        let spec = try await request.body(TeamMemberSpec.self)
        return try request.json(await request.services.team.admit(spec), status: .created)
    }

    @Sendable static func remove(_ request: APIRequest) async throws -> Response {
        let text = try request.parameter("host")
        guard let host = HostName(text) else {
            throw Problem(.notFound, "\"\(SanitizedText(text))\" is not the name of a host", hint: "patchbay team")
        }
        try await request.services.team.remove(host)
        return request.noContent
    }

    @Sendable static func issue(_ request: APIRequest) async throws -> Response {
        let spec = try await request.body(TeamCertificateSpec.self)
        return try request.json(await request.services.team.issue(spec), status: .created)
    }
}
