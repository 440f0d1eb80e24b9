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

/// The moments in one lasting operation at which a crash leaves something different behind.
///
/// Tests hand the store a closure that kills the process at one of them; the product's does nothing.
package enum FailurePoint: String, Sendable, CaseIterable {
    /// Nothing is written.
    case beforeTransaction
    /// The spent invite's row is changed, the grant's is not, nothing is committed.
    case afterSpend
    /// All rows and the audit line are in the transaction.
    case beforeCommit
    /// The database has it, the audit file has not.
    case afterCommit
    /// The audit file has half of a line.
    case auditHalfWritten
    /// The audit file has the line, perhaps only in the page cache.
    case auditWritten
    /// The full audit file is a segment, and there is no new one yet.
    case auditSegmentFull
    /// Everything is on the disk, nobody was told.
    case beforeReply
}
