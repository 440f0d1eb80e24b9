/// Whether the audit log is whole: the answer to `GET /v1/audit/verify`.
package struct AuditVerification: Hashable, Sendable, Codable {
    /// How many lines there are.
    package let lines: Int
    /// The first line, from 1, that is not what was written; nil when all are.
    package let brokenLine: Int?
    /// How that shows.
    package let what: String?

    package init(lines: Int, brokenLine: Int? = nil, what: String? = nil) {
        self.lines = lines
        self.brokenLine = brokenLine
        self.what = what
    }
}
