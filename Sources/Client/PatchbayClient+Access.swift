package import Model
import NIOHTTP1

/// Invites, grants, access requests and the remote listener.
extension PatchbayClient {
    /// The broker answers a revocation only after every connection under the grant is closed.
    private static let revocationTimeout = Duration.seconds(20)

    package func invites() async throws -> [Invite] { try await items(at: "invites") }

    /// Creates an invite. Only this response contains the secret.
    package func invite(_ spec: InviteSpec) async throws -> IssuedInvite {
        try await response(to: OutgoingRequest(method: .POST, path: ["invites"], body: body(spec)))
    }

    /// Redeems an invite. After a lost response, the same redemption returns the same grant for 60 seconds.
    package func redeem(_ spec: RedemptionSpec) async throws -> IssuedGrant {
        try await response(to: OutgoingRequest(method: .POST, path: ["invites", "redeem"], body: body(spec)))
    }

    /// Returns the brokers that advertise themselves on the broker's network.
    package func nearbyBrokers() async throws -> [NearbyBroker] { try await items(at: "brokers") }

    package func grants() async throws -> [Grant] { try await items(at: "grants") }

    /// Creates a grant for the clients of a new unix socket.
    package func createGrant(_ spec: SocketGrantSpec) async throws -> Grant {
        try await response(to: OutgoingRequest(method: .POST, path: ["grants"], body: body(spec)))
    }

    /// Returns the grant of this client.
    package func ownGrant() async throws -> Grant {
        try await response(to: OutgoingRequest(method: .GET, path: ["grants", "self"]))
    }

    /// Revokes a grant with its descendants, or an invite. The ID `self` is the client's own grant. Returns after their connections are closed.
    package func revoke(_ id: String) async throws -> RevocationResult {
        try await response(
            to: OutgoingRequest(method: .DELETE, path: ["grants", id]),
            extraTimeout: Self.revocationTimeout
        )
    }

    /// Revokes every grant and every open invite.
    package func revokeAll() async throws -> RevocationResult {
        try await response(to: OutgoingRequest(method: .DELETE, path: ["grants"]), extraTimeout: Self.revocationTimeout)
    }

    package func remote() async throws -> RemoteStatus {
        try await response(to: OutgoingRequest(method: .GET, path: ["remote"]))
    }

    /// Turns the remote listener on or off. After `off`, its connections are closed.
    package func setRemote(_ spec: RemoteSpec) async throws -> RemoteStatus {
        try await response(to: OutgoingRequest(method: .PUT, path: ["remote"], body: body(spec)))
    }

    /// Creates a one-time code for the dashboard. Works on the control socket only.
    package func dashboardCode() async throws -> DashboardCode {
        try await response(to: OutgoingRequest(method: .POST, path: ["dashboard", "codes"]))
    }

    package func requests() async throws -> [AccessRequest] { try await items(at: "access-requests") }

    /// Requests access for this process. An owner answers with the request's user code.
    package func requestAccess(_ spec: AccessRequestSpec) async throws -> AccessRequestCreated {
        try await response(to: OutgoingRequest(method: .POST, path: ["access-requests"], body: body(spec)))
    }

    /// Returns the state of a request of this process, with the grant after an approval.
    package func pollAccessRequest(_ poll: AccessRequestPoll) async throws -> AccessRequestStatus {
        try await response(to: OutgoingRequest(method: .POST, path: ["access-requests", "poll"], body: body(poll)))
    }

    /// Approves the request with this user code, or a part of it.
    package func approveRequest(_ code: String, limits: AccessRequestLimits) async throws -> AccessRequest {
        try await response(
            to: OutgoingRequest(method: .POST, path: ["access-requests", code, "approve"], body: body(limits))
        )
    }

    /// Denies the request with this user code.
    package func denyRequest(_ code: String) async throws -> AccessRequest {
        try await response(to: OutgoingRequest(method: .POST, path: ["access-requests", code, "deny"]))
    }

    /// Reopens requests after too many wrong user codes.
    package func unlockRequests() async throws {
        try await perform(OutgoingRequest(method: .POST, path: ["access-requests", "unlock"]))
    }

    /// Restarts the broker's logical clock at the wall clock, after an administrator has corrected the wall clock.
    /// Returns what ended.
    package func recoverClock() async throws -> RevocationResult {
        try await response(
            to: OutgoingRequest(method: .POST, path: ["clock", "recover"]),
            extraTimeout: Self.revocationTimeout
        )
    }
}
