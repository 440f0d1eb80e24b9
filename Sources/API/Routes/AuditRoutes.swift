import AccessControl
import Apps
import HTTPTypes
import HummingbirdCore
import Model
import NIOCore

/// `/v1/audit` and `/v1/clock`: maintenance by an owner.
enum AuditRoutes {
    private static let defaultLimit = 100
    private static let maxLimit = 1_000

    static let listQuery: [APIRoute.Query] = [
        .integer("after", "Entries after this number; without it, the newest entries"),
        .integer("limit", "Number of entries, at most 1,000"),
    ]

    @Sendable static func list(_ request: APIRequest) async throws -> APIResponse {
        let count = min(max(try request.query("limit", as: Int.self) ?? defaultLimit, 1), maxLimit)
        let lines = try await request.services.accessStore.auditLines(
            after: try request.query("after", as: Int.self),
            limit: count
        )
        return try .json(AuditPage(lines: lines.map { String(decoding: $0, as: UTF8.self) }))
    }

    @Sendable static func verify(_ request: APIRequest) async throws -> APIResponse {
        try .json(await request.services.accessStore.verifyAudit())
    }

    @Sendable static func recoverClock(_ request: APIRequest) async throws -> APIResponse {
        let ended = try await ExpirationService(of: request.services.accessStore).recoverClock(
            by: request.principal.actor,
            from: request.principal.source
        )
        return try .json(RevocationResult(ended: ended))
    }
}

/// `/v1/artifacts`: the original bytes of data that was too large for a tool result. Only owners and the client of the
/// tool call may read them, as with `resources/read`.
enum ArtifactRoutes {
    @Sendable static func show(_ request: APIRequest) async throws -> APIResponse {
        let sha = try request.parameter("sha")
        guard let artifact = await request.services.mcp.artifacts.artifact(sha, for: request.principal) else {
            throw Problem(
                .notFound,
                "you have no artifact \"\(SanitizedText(sha, limit: 64))\"; artifacts are stored for one hour",
                hint: "call the tool again"
            )
        }
        // The app chooses the media type, so browsers must not show the file as a page of this server.
        return .body(
            ByteBuffer(bytes: artifact.bytes),
            type: artifact.mimeType,
            headers: [.contentDisposition: "attachment"]
        )
    }
}
