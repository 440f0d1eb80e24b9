/// Lines of the audit log as they are written there, the oldest first: the answer to `GET /v1/audit`.
package struct AuditPage: Hashable, Sendable, Codable {
    package let schema: Int
    /// Each is one JSON document, kept as text: the next line holds the hash of these very bytes.
    package let lines: [String]

    package init(lines: [String]) {
        schema = 1
        self.lines = lines
    }
}
