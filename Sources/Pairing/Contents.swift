import FoundationEssentials
import Model

/// Everything that the database holds, read at start.
struct Contents: Sendable {
    var invites: [InviteRecord] = []
    var grants: [GrantRecord] = []
    var approvals: [Approval] = []
    var secrets: [SecretRecord] = []
    /// Where the audit log stood at the last commit, and the lines that may not be in its file yet.
    var head = AuditLine.Head.none
    var pending: [PendingLine] = []
    var highWater: EffectiveTime?
    var gate = CodeGate()
    /// Rows that are not as they were written: what they are, in words.
    var damaged: [String] = []

    /// A line that was committed.
    struct PendingLine: Sendable {
        let number: Int
        let text: Data
    }
}
