import FoundationEssentials
import Model

/// Everything that the database holds, read at start.
struct PersistedState: Sendable {
    var invites: [InviteRecord] = []
    var grants: [GrantRecord] = []
    var approvals: [Approval] = []
    var secrets: [SecretRecord] = []
    /// Where the audit log stood at the last commit, and the lines that may not be in its file yet.
    var head = AuditEntry.Head.none
    var pending: [PendingLine] = []
    var highWater: MonotonicTime?
    var gate = UserCodeAttemptLimiter()
    /// Rows that are not as they were written: what they are, in words.
    var damaged: [String] = []

    /// A line that was committed.
    struct PendingLine: Sendable {
        let number: Int
        let text: Data
    }
}
