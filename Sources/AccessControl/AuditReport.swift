/// What a check of the whole audit log found.
package struct AuditReport: Hashable, Sendable {
    package let lines: Int
    /// The first line, from 1, that is not what was written, and how that shows; nil when all are.
    package let broken: Break?

    package struct Break: Hashable, Sendable {
        package let line: Int
        package let what: String
    }
}
