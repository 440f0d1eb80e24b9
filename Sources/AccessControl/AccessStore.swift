import Crypto
import FoundationEssentials
package import Logging
package import Model
import Synchronization
import SystemIO

/// Stores every invite, grant, approval and endpoint secret, and saves each change before the call returns.
///
/// Survives `kill -9` and power loss: when a call returns, its change is in the database (WAL, `synchronous=FULL`) and
/// in the audit log (fdatasync(2)). When a call throws `notSaved`, either nothing was committed, or the change is
/// committed and its audit entry is written before anything else. Revocations take effect in both cases. Runs on its
/// own thread, because these calls block on the disk.
package actor AccessStore {
    package nonisolated var unownedExecutor: UnownedSerialExecutor { Self.thread.asUnownedSerialExecutor() }
    private static let thread = ThreadExecutor(named: "patchbay-pair")
    /// Maximum time that last-use times and the clock's high-water mark stay unsaved.
    static let saveInterval: Duration = .seconds(60)

    let logger: Logger
    let keys: Keyring
    let reading: @Sendable () -> ClockReading
    private let database: AccessDatabase
    private var auditLog: AuditLog
    nonisolated let auditReader: AuditLogReader
    private let failurePoint: @Sendable (FailurePoint) -> Void

    nonisolated let sharedState: Mutex<SharedAccessState>
    var requestQueue = AccessRequestQueue()
    var userCodeLimiter: UserCodeAttemptLimiter
    var attemptLimiter = FailedAttemptLimiter()
    private var head: AuditEntry.Head
    /// Audit entries that are committed to the database and not yet in the audit file. `flushed` is the last one in the
    /// file.
    private var pending: [PersistedState.PendingLine] = []
    private var flushed: Int
    /// Number of committed changes since the start.
    private var commits = 0
    /// Revocations that are in effect but could not be saved. The next commit includes them.
    private var unsaved = ChangeSet()
    /// Endpoint calls that are not yet in the audit log. `oldestBufferedAt` is the time of the first one.
    nonisolated let auditBuffer = AuditBuffer()
    private var oldestBufferedAt: MonotonicTime?
    let approvalChangeSubscribers = Broadcast<EndpointID>(slow: .keepsNewest(1_024))
    private var lastSave: MonotonicTime
    /// Problems found in the stored files, as sentences for `patchbay doctor`.
    package private(set) var findings: [String]
    /// The reason why the last change could not be saved; nil after a successful commit.
    package private(set) var storageProblem: String?

    /// Opens the state folder, repairs it after a crash, and applies the revocations of the audit log. Blocks; call it
    /// only at startup.
    ///
    /// Sets a damaged database aside and creates an empty one. An empty database accepts no token, so nothing is
    /// revived.
    /// - Parameters:
    ///   - folder: An existing folder that this user owns and no other user can write.
    ///   - credentials: `$CREDENTIALS_DIRECTORY`, if set.
    ///   - logger: Receives the findings.
    ///   - auditSegment: Size in bytes at which a segment of the audit log is full.
    ///   - reading: Reads the machine's clocks.
    ///   - failurePoint: Called at each point where a crash leaves a different state. Only tests use it.
    /// - Throws: `AccessError` when the folder or its files are accessible to other users, or the sealing key is wrong.
    package init(
        in folder: String,
        credentials: String? = nil,
        logger: Logger,
        auditSegment: Int = 8 << 20,
        reading: @escaping @Sendable () -> ClockReading = ClockReading.now,
        failurePoint: @escaping @Sendable (FailurePoint) -> Void = { _ in }
    ) throws {
        try PrivateFile.check(folder: folder)
        let isNew = try !PrivateFile.check(file: "\(folder)/\(AccessDatabase.name)")
        let keys = Keyring(try SealingKey.load(credentials: credentials, folder: folder, isNew: isNew))
        var (database, contents, findings) = try Self.open(folder, keys)
        findings += contents.damaged

        let audit = try AuditLog(in: folder, segment: auditSegment)
        let recovery = try AuditRecovery(audit, in: folder, after: contents)
        findings += recovery.findings
        let highWater = [contents.highWater, recovery.time].compactMap { $0 }.max()
        let clock = MonotonicWallClock(highWater: highWater, reading: reading())
        lastSave = clock.now
        var state = AccessState(contents)
        let losses = state.replay(recovery.unknown, at: clock.now)
        state.apply(losses)
        sharedState = Mutex(SharedAccessState(state, clock))
        unsaved = losses
        if !findings.isEmpty {
            var event = AuditEvent(.repaired, by: .broker, from: .broker)
            event.detail = findings.joined(separator: "; ")
            unsaved.events.append(event)
        }

        self.database = database
        auditLog = audit
        auditReader = AuditLogReader(folder)
        self.keys = keys
        self.findings = findings
        self.logger = logger
        self.reading = reading
        self.failurePoint = failurePoint
        head = recovery.head
        pending = recovery.missing
        flushed = recovery.written.number
        userCodeLimiter = contents.userCodeLimiter
        for finding in findings {
            logger.error("a stored access control file has a problem", metadata: ["what": "\(finding)"])
        }
    }

    /// Saves pending changes and closes the database.
    package func close() throws {
        try save()
        try database.close()
        sharedState.withLock { $0.wakeUp }?.finish()
    }

    /// A copy of the current state.
    var state: AccessState { sharedState.withLock { $0.state } }

    /// Difference between the logical clock and the wall clock; zero when the wall clock is not behind.
    package var wallClockLag: Duration {
        let reading = reading()
        return sharedState.withLock { shared in
            shared.clock.advance(to: reading)
            return shared.clock.wallClockLag
        }
    }

    /// Verifies the hash chain of the whole audit log.
    package func verifyAudit() async throws -> AuditVerification {
        try flush()
        return try await auditReader.verify(endingAt: head)
    }

    nonisolated func now() -> MonotonicTime {
        let reading = reading()
        return sharedState.withLock { $0.clock.advance(to: reading) }
    }

    /// Saves a change, then applies the change.
    ///
    /// Order: reserve space for the audit entries; commit the rows and the entries in one transaction; append the
    /// entries to the audit file; fdatasync(2); return. A crash before the commit changes nothing. If the
    /// crash comes after the commit, the next start appends the missing entries to the file.
    func commit(_ change: ChangeSet) throws {
        do {
            try write(change)
            storageProblem = nil
        } catch let error as AccessError {
            if case .notSaved = error { storageProblem = error.description }
            throw error
        }
    }

    private func write(_ change: ChangeSet) throws {
        let now = now()
        try flush()
        var combined = unsaved + change
        let named = Set(combined.grants.map(\.id))
        let (saved, used) = sharedState.withLock { shared in
            (shared.unsavedLastUsed, shared.unsavedLastUsed.subtracting(named).compactMap { shared.state.grants[$0] })
        }
        combined.grants += used
        let buffered = auditBuffer.events
        combined.events += buffered
        var next = head
        let lines = try combined.events.map { event in
            let wall = Date(timeIntervalSince1970: Double(reading().wall) / 1_000)
            let line = AuditEntry(
                number: next.number + 1,
                previousHash: next.hash,
                wallTime: wall,
                logicalTime: now,
                event: event
            )
            let (text, head) = try line.encoded()
            next = head
            return PersistedState.PendingLine(number: line.number, text: text)
        }
        try auditLog.reserve(for: lines.reduce(0) { $0 + $1.text.count + 1 })
        try database.commit(
            combined,
            lines: lines,
            head: next,
            flushed: flushed,
            highWater: now,
            failurePoint: failurePoint
        )
        sharedState.withLock { shared in
            shared.apply(combined)
            shared.unsavedLastUsed.subtract(saved)
        }
        commits += 1
        head = next
        pending += lines
        unsaved = ChangeSet()
        auditBuffer.remove(first: buffered.count)
        oldestBufferedAt = nil
        lastSave = now
        // The change is now in effect, even if the audit file cannot be written. The next operation writes the missing
        // entries first.
        defer {
            if !change.grants.isEmpty || !change.invites.isEmpty { wake() }
            publishApprovalChange(combined)
        }
        try flush()
        failurePoint(.beforeReply)
    }

    /// Ends grants, invites, approvals or secrets. The change takes effect at once, even if the disk fails. Then saves
    /// it, and closes the affected sessions meanwhile.
    func endAndCommit(_ change: ChangeSet) async throws {
        let cancellations = sharedState.withLock { shared in
            shared.apply(change)
            return shared.sessions.removeAll(of: change.endedGrants)
        }
        // Runs in parallel with the commit, because the disk may be slow or full.
        async let areCancelled: Void = GrantSessions.cancel(cancellations)
        let commits = commits
        let result = Result { try commit(change) }
        // A committed change lacks only its audit entry, which `flush` retries.
        if case .failure = result, self.commits == commits { unsaved = unsaved + change }
        await areCancelled
        try result.get()
    }

    /// Returns the time until buffered audit events have to be written; nil when the buffer is empty.
    func auditFlushDelay(at now: MonotonicTime) -> Duration? {
        let count = auditBuffer.count
        guard count > 0 else { return nil }
        let since = oldestBufferedAt ?? now
        oldestBufferedAt = since
        return count >= AuditBuffer.flushThreshold ? .zero : Self.auditFlushInterval - (now - since)
    }

    func saveUserCodeLimiter() throws { try database.save(userCodeLimiter, as: "userCodeLimiter") }

    /// Wakes `ExpirationService`, because the next deadline may have moved forward.
    nonisolated func wake() { sharedState.withLock { $0.wakeUp }?.yield() }

    /// Returns a new wake-up stream for each wait. A stream whose reader was cancelled is finished and cannot be
    /// reused.
    func makeWakes() -> AsyncStream<Void> {
        let (stream, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        sharedState.withLock { $0.wakeUp = continuation }
        auditBuffer.setWakeUp(continuation)
        return stream
    }

    /// Saves the clock and the last-use times if the last save is `saveInterval` ago, or if audit events are due.
    func saveIfDue(at now: MonotonicTime) throws {
        let isFlushDue = auditFlushDelay(at: now).map { $0 <= .zero } ?? false
        if now - lastSave >= Self.saveInterval || !unsaved.events.isEmpty || isFlushDue { try save() }
    }

    private func save() throws { try commit(ChangeSet()) }

    /// Appends the committed audit entries to the audit file.
    private func flush() throws {
        guard let last = pending.last else { return }
        try auditLog.append(pending.map(\.text), failurePoint: failurePoint)
        flushed = last.number
        pending = []
    }

    private static func open(_ folder: String, _ keys: Keyring) throws -> (AccessDatabase, PersistedState, [String]) {
        do {
            let database = try AccessDatabase(in: folder, keys: keys)
            return (database, try database.read(), [])
        } catch  where AccessDatabase.isDamage(error) {
            let path = "\(folder)/\(AccessDatabase.name)"
            let aside = PrivateFile.setAside(path, companions: AccessDatabase.companions)
            let database = try AccessDatabase(in: folder, keys: keys)
            let finding =
                "\(path) was damaged and is kept as \(aside); no client is paired any more; pair again, or stop the broker and put a"
                + " good copy there"
            return (database, try database.read(), [finding])
        }
    }
}

/// The in-memory access state: clock, grants, and the sessions that depend on them.
///
/// One lock protects the state. The lock is never held during disk I/O, so authenticating a valid token does not wait
/// for a commit. Two operations are atomic under the lock: check a grant and register a session; end a grant and
/// collect its sessions. Only `AccessStore` modifies permissions.
struct SharedAccessState: Sendable {
    var clock: MonotonicWallClock
    var state: AccessState
    /// Incremented whenever a grant ends, or an approval or a secret changes.
    private(set) var generation: UInt64 = 0
    var sessions = GrantSessions()
    /// IDs of grants whose last-use time is not yet saved.
    var unsavedLastUsed: Set<String> = []
    /// Sealed secrets that their apps rejected.
    var rejected: [EndpointID: Data] = [:]
    /// Wakes `ExpirationService` when a deadline may have moved forward.
    var wakeUp: AsyncStream<Void>.Continuation?

    init(_ state: AccessState, _ clock: MonotonicWallClock) {
        self.state = state
        self.clock = clock
    }

    mutating func apply(_ change: ChangeSet) {
        state.apply(change)
        if change.altersTrust { generation &+= 1 }
    }

    /// Returns whether a grant is valid at a time.
    func isLive(_ grant: String, at now: MonotonicTime) -> Bool {
        state.grants[grant].map { $0.endReason(at: now) == nil } ?? false
    }

    /// Records the use of a grant.
    mutating func touch(_ grant: String, at now: MonotonicTime) {
        state.touch(grant, at: now)
        unsavedLastUsed.insert(grant)
    }
}

/// Checks for deliveries to apps: no delivery happens after its permission ended.
extension AccessStore {
    /// The generation of grants, approvals and secrets. Read the generation before looking up routes and secrets.
    package nonisolated var generation: UInt64 { sharedState.withLock { $0.generation } }

    /// Runs the write of a delivery, unless a grant, an approval or a secret ended or changed since a generation.
    ///
    /// Holds the lock during the write, so no grant ends and no approval changes meanwhile. The write must not block.
    /// - Parameters:
    ///   - grant: The caller's grant; nil for an owner.
    ///   - generation: Value of `generation` before the delivery's routes and secret were looked up.
    ///   - write: Must return immediately.
    /// - Returns: The result of the write; nil when the write did not run.
    /// - Throws: The error of the write.
    package nonisolated func deliver<Value: Sendable, Failure: Error>(
        under grant: String?,
        since generation: UInt64,
        _ write: () throws(Failure) -> Value
    ) throws(Failure) -> Value? {
        let reading = reading()
        return try sharedState.withLock { (shared) throws(Failure) -> Value? in
            guard shared.generation == generation else { return nil }
            if let grant {
                let now = shared.clock.advance(to: reading)
                guard shared.isLive(grant, at: now) else { return nil }
            }
            return try write()
        }
    }
}
