package import Model
import NIOHTTP1

/// Calls of the API at `/v1/team`.
package struct TeamClient: Sendable {
    let client: PatchbayClient

    /// The broker asks etcd and the other host in these calls.
    private static let registryTime = Duration.seconds(40)

    package func status() async throws -> TeamStatus {
        try await client.response(to: request(.GET), extraTimeout: Self.registryTime)
    }

    /// Creates a team, or completes an earlier call.
    package func create(_ spec: TeamSpec) async throws -> TeamStatus {
        try await client.response(to: request(.POST, body: client.body(spec)), extraTimeout: Self.registryTime)
    }

    package func join(_ spec: TeamJoinSpec) async throws -> TeamStatus {
        try await client.response(to: request(.POST, "join", body: client.body(spec)), extraTimeout: Self.registryTime)
    }

    package func leave() async throws { try await perform(request(.DELETE)) }

    package func invite(_ spec: TeamInviteSpec) async throws -> TeamInvite {
        try await client.response(to: request(.POST, "invites", body: client.body(spec)))
    }

    package func invites() async throws -> [OpenTeamInvite] {
        try await (client.response(to: request(.GET, "invites")) as ListResponse).items
    }

    package func revoke(invite id: String) async throws { try await perform(request(.DELETE, "invites", id)) }

    /// Sends the request of a host that joins to the authority of the team.
    package func admit(_ spec: TeamMemberSpec) async throws -> TeamAdmission {
        try await client.response(to: request(.POST, "members", body: client.body(spec)))
    }

    package func remove(_ host: HostName) async throws { try await perform(request(.DELETE, "members", host.text)) }

    /// Returns the certificate of an etcd node.
    package func issue(_ spec: TeamCertificateSpec) async throws -> TeamCertificate {
        try await client.response(to: request(.POST, "certificates", body: client.body(spec)))
    }

    private func request(_ method: HTTPMethod, _ path: String..., body: [UInt8]? = nil) -> OutgoingRequest {
        OutgoingRequest(method: method, path: ["team"] + path, body: body)
    }

    private func perform(_ request: OutgoingRequest) async throws {
        _ = try await client.bytes(of: request, extraTimeout: Self.registryTime)
    }
}
