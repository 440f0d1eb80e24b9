import FoundationEssentials
import Model

/// The content of the database, read at startup.
struct PersistedState: Sendable {
    var invites: [InviteRecord] = []
    var grants: [GrantRecord] = []
    var approvals: [Approval] = []
    var denials: [Denial] = []
    var secrets: [SecretRecord] = []
    /// Position of the audit log at the last commit, and the entries that its file may lack.
    var head = AuditEntry.Head.none
    var pending: [PendingLine] = []
    var highWater: MonotonicTime?
    var userCodeLimiter = UserCodeAttemptLimiter()
    /// Descriptions of rows with an invalid MAC.
    var damaged: [String] = []

    /// A committed audit entry.
    struct PendingLine: Sendable {
        let number: Int
        let text: Data
    }
}

/// Points in a commit where a crash leaves a different state on the disk (failpoints).
///
/// Tests pass `AccessStore` a closure that kills the process at one of them. In production the closure does nothing.
package enum FailurePoint: String, Sendable, CaseIterable {
    /// Nothing is written.
    case beforeTransaction
    /// The invite's row is updated, the grant's row is not, and nothing is committed.
    case afterSpend
    /// All rows and the audit entries are in the transaction.
    case beforeCommit
    /// The database is committed; the audit file lacks the entries.
    case afterCommit
    /// The audit file has half of an entry.
    case auditHalfWritten
    /// The audit file has the entries, possibly only in the page cache.
    case auditWritten
    /// The full audit file is renamed to a segment, and the new file does not exist yet.
    case auditSegmentFull
    /// Everything is on the disk, and the caller has no response yet.
    case beforeReply
}
