import HummingbirdCore
package import Model

/// `/v1/profiles`: the files that describe plain HTTP debug servers.
enum ProfileRoutes {
    @Sendable static func list(_ request: APIRequest) async throws -> APIResponse {
        try .json(ListResponse(request.services.profiles.profiles()))
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

/// Lists the profiles, and checks profile files. Rejections are thrown as `Problem`.
package protocol ProfileProvider: Sendable {
    func profiles() -> [ProfileSummary]
    /// Parses a profile file, and tries it on its target if there is one.
    func check(_ spec: ProfileCheckSpec) async throws -> ProfileCheck
}
