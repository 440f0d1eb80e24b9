import Hummingbird
import Model
import AccessControl

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
