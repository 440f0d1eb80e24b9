package import Model
import NIOHTTP1

/// Who may use the broker: invites, grants, requests, and the log of them.
extension PatchbayClient {
    /// Everything that a revocation has to cut is cut before it is answered.
    private static let cutting = Duration.seconds(20)

    package func invites() async throws -> InviteList {
        try await answer(to: OutgoingRequest(method: .GET, path: ["invites"]))
    }

    /// Makes an invite; its secret is in this answer and nowhere else.
    package func invite(_ spec: InviteSpec) async throws -> IssuedInvite {
        try await answer(to: OutgoingRequest(method: .POST, path: ["invites"], body: body(spec)))
    }

    /// Spends an invite. The same redemption again within a minute, after a lost answer, brings the same grant.
    package func redeem(_ spec: RedemptionSpec) async throws -> IssuedGrant {
        try await answer(to: OutgoingRequest(method: .POST, path: ["invites", "redeem"], body: body(spec)))
    }

    package func grants() async throws -> GrantList {
        try await answer(to: OutgoingRequest(method: .GET, path: ["grants"]))
    }

    /// Ends a grant or an invite, everything made under it, and every connection of theirs; then returns.
    package func revoke(_ id: String) async throws -> RevocationResult {
        try await answer(to: OutgoingRequest(method: .DELETE, path: ["grants", id]), extraPatience: Self.cutting)
    }

    /// Ends every grant and every open invite.
    package func revokeAll() async throws -> RevocationResult {
        try await answer(to: OutgoingRequest(method: .DELETE, path: ["grants"]), extraPatience: Self.cutting)
    }

    package func requests() async throws -> AccessRequestList {
        try await answer(to: OutgoingRequest(method: .GET, path: ["requests"]))
    }

    /// Says yes to the request with this code.
    package func approveRequest(_ code: String) async throws -> AccessRequest {
        try await answer(to: OutgoingRequest(method: .POST, path: ["requests", code, "approve"]))
    }

    /// Says no to the request with this code.
    package func denyRequest(_ code: String) async throws -> AccessRequest {
        try await answer(to: OutgoingRequest(method: .POST, path: ["requests", code, "deny"]))
    }

    /// Lets requests be answered again after too many wrong codes.
    package func reopenRequests() async throws {
        try await perform(OutgoingRequest(method: .POST, path: ["requests", "reopen"]))
    }

    /// The audit log's own lines, each a JSON document.
    ///
    /// - Parameters:
    ///   - number: Only lines after this one; nil for the last ones.
    ///   - limit: How many at most.
    /// - Returns: The lines, the oldest first.
    /// - Throws: `ClientError`.
    package func audit(after number: Int? = nil, limit: Int? = nil) async throws -> AuditPage {
        var call = OutgoingRequest(method: .GET, path: ["audit"])
        if let number { call.query.append(("after", "\(number)")) }
        if let limit { call.query.append(("limit", "\(limit)")) }
        return try await answer(to: call)
    }

    /// Lets the broker go by the machine's clock again, after that was set right; says what ended by that.
    package func recoverClock() async throws -> RevocationResult {
        try await answer(to: OutgoingRequest(method: .POST, path: ["clock", "recover"]), extraPatience: Self.cutting)
    }

    /// Checks the whole audit log. A long one takes long.
    package func verifyAudit() async throws -> AuditVerification {
        try await answer(to: OutgoingRequest(method: .GET, path: ["audit", "verify"]), extraPatience: .seconds(120))
    }
}
