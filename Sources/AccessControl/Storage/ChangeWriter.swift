import FoundationEssentials
import Model

/// Writes changes to the database, and their entries to the audit log.
///
/// Order: reserve space for the audit entries; commit the rows and the entries in one transaction; append the entries
/// to the audit file; fdatasync(2). A crash before the commit changes nothing. If the crash comes after the commit,
/// the next start appends the missing entries to the file. Blocks on the disk; used only on the thread of
/// `AccessStore`.
struct ChangeWriter: ~Copyable {
    private let database: AccessDatabase
    private var auditLog: AuditLog
    private let failurePoint: @Sendable (FailurePoint) -> Void
    /// Position of the audit log, including the entries that its file lacks.
    private(set) var head: AuditEntry.Head
    /// Entries that are committed to the database and not yet in the audit file.
    private var pending: [PersistedState.PendingLine]
    /// Number of the last entry in the audit file.
    private var flushed: Int

    init(
        _ database: AccessDatabase,
        _ auditLog: consuming AuditLog,
        after recovery: AuditRecovery,
        failurePoint: @escaping @Sendable (FailurePoint) -> Void
    ) {
        self.database = database
        self.auditLog = auditLog
        self.failurePoint = failurePoint
        head = recovery.head
        pending = recovery.missing
        flushed = recovery.written.number
    }

    /// Commits a change to the database. Call `finish` afterwards.
    ///
    /// - Parameters:
    ///   - change: The rows and the audit events.
    ///   - now: The logical time.
    ///   - wallTime: The time by the wall clock.
    /// - Throws: `AccessDatabase.Conflict`; `AccessError`, after which nothing was committed.
    mutating func commit(_ change: ChangeSet, at now: MonotonicTime, wallTime: Date) throws {
        try flush()
        var next = head
        let lines = try change.events.map { event in
            let entry = AuditEntry(
                number: next.number + 1,
                previousHash: next.hash,
                wallTime: event.occurredAt ?? wallTime,
                logicalTime: now,
                event: event
            )
            let (text, head) = try entry.encoded()
            next = head
            return PersistedState.PendingLine(number: entry.number, text: text)
        }
        try auditLog.reserve(for: lines.reduce(0) { $0 + $1.text.count + 1 })
        try database.commit(
            change,
            lines: lines,
            head: next,
            flushed: flushed,
            highWater: now,
            failurePoint: failurePoint
        )
        head = next
        pending += lines
    }

    /// Appends the entries of the last commit to the audit file. After an error, the next commit appends them first.
    mutating func finish() throws {
        try flush()
        failurePoint(.beforeReply)
    }

    /// Appends the committed entries to the audit file.
    mutating func flush() throws {
        guard let last = pending.last else { return }
        try auditLog.append(pending.map(\.text), failurePoint: failurePoint)
        flushed = last.number
        pending = []
    }

    /// Returns the oldest segments of the audit log that the retention does not keep; nil if there are none.
    func expiredSegments(_ retention: AuditRetention, at now: Date) throws(AccessError) -> AuditSegments.Expired? {
        try auditLog.expiredSegments(retention, at: now)
    }

    /// Deletes segments. Call it after the audit entry about their deletion was written.
    mutating func delete(_ expired: AuditSegments.Expired) { auditLog.delete(expired) }

    /// Saves the limiter of user codes, which has no audit entry.
    func save(_ limiter: UserCodeAttemptLimiter) throws { try database.save(limiter, as: "userCodeLimiter") }

    /// Closes the database.
    func close() throws { try database.close() }
}
