import AccessControl
import HTTPTypes
import Hummingbird
import MCP
import Model
import NIOCore

/// `/v1/audit` and `/v1/clock`: for people who look after it.
enum AuditRoutes {
    private static let standardCount = 100
    private static let longestCount = 1_000

    @Sendable static func show(_ call: APIRequest) async throws -> Response {
        let count = min(max(try call.query("limit", as: Int.self) ?? standardCount, 1), longestCount)
        let lines = try await call.broker.pairing.auditLines(
            after: try call.query("after", as: Int.self),
            limit: count
        )
        return try call.answer(AuditPage(lines: lines.map { String(decoding: $0, as: UTF8.self) }))
    }

    @Sendable static func verify(_ call: APIRequest) async throws -> Response {
        let report = try await call.broker.pairing.verifyAudit()
        return try call.answer(
            AuditVerification(lines: report.lines, brokenLine: report.broken?.line, what: report.broken?.what)
        )
    }

    @Sendable static func recoverClock(_ call: APIRequest) async throws -> Response {
        let ended = try await call.broker.pairing.recoverClock(by: call.visitor.caller, from: call.visitor.origin)
        return try call.answer(RevocationResult(ended: ended))
    }
}

/// `/v1/artifacts`: what was too heavy for a tool's result, as it is. Whoever's call it came from may have it, and owners,
/// as with `resources/read`.
enum ArtifactRoutes {
    @Sendable static func show(_ call: APIRequest) async throws -> Response {
        let sha = try call.parameter("sha")
        guard let artifact = await call.broker.agents.artifacts.artifact(sha, for: call.visitor.agent) else {
            throw Problem(
                .notFound,
                "nothing is kept for you as \"\(SanitizedText(sha, limit: 64))\"; what a result links to is kept for an hour",
                next: "call the tool again"
            )
        }
        return Response(
            status: .ok,
            // The type is the app's word, which makes no page of ours out of it.
            headers: [.contentType: artifact.mimeType, .contentDisposition: "attachment"],
            body: ResponseBody(byteBuffer: ByteBuffer(bytes: artifact.bytes))
        )
    }
}
