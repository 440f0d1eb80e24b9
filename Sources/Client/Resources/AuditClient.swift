package import Model
import NIOHTTP1

/// The audit log.
package struct AuditClient: Sendable {
    let client: PatchbayClient

    /// Returns lines of the audit log, each a JSON document.
    ///
    /// - Parameters:
    ///   - number: Return only lines after this line number; nil for the last lines.
    ///   - limit: Maximum number of lines.
    /// - Returns: The lines, oldest first.
    /// - Throws: `ClientError`.
    package func entries(after number: Int? = nil, limit: Int? = nil) async throws -> AuditPage {
        let query = [("after", number.map(String.init)), ("limit", limit.map(String.init))]
        return try await client.response(to: OutgoingRequest(method: .GET, path: ["audit"], query: query))
    }

    /// Verifies the whole audit log. Takes up to minutes for a long log.
    package func verify() async throws -> AuditVerification {
        try await client.response(
            to: OutgoingRequest(method: .GET, path: ["audit", "verify"]),
            extraTimeout: .seconds(120)
        )
    }
}
