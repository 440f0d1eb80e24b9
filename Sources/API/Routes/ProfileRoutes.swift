import Apps
import Model

/// `/v1/profiles`: the files that describe plain HTTP debug servers.
enum ProfileRoutes {
    @Sendable static func list(_ request: APIRequest) async throws -> APIResponse {
        try .json(ListResponse(request.services.profiles.profiles))
    }

    /// Checks a profile file.
    ///
    /// The file is the request body, so the broker opens no file for its client. The requests of the profile go to the
    /// target only: a profile cannot name a host.
    @Sendable static func check(_ request: APIRequest) async throws -> APIResponse {
        try .json(
            try await request.services.profiles.check(try await request.body(ProfileCheckSpec.self))
        )
    }
}
