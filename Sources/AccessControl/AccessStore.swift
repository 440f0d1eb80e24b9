package import FoundationEssentials
package import Logging
package import Model
import Synchronization
import SystemIO

/// Stores every invite, grant, approval and endpoint secret, and saves each change before the call returns.
///
/// The services `invites`, `grants`, `requests`, `approvals` and `secrets` have the operations. The store has the
/// state, the commit and the audit log.
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
    /// Maximum delay of a call's audit entry. Writing each entry separately would delay a call by several milliseconds
    /// (fsync(2)).
    private static let auditFlushInterval: Duration = .seconds(1)

    let logger: Logger
    let keys: DerivedKeys
    let reading: @Sendable () -> ClockReading
    private var writer: ChangeWriter
    nonisolated let auditReader: AuditLogReader

    /// The state in memory. Its operations do not wait for the disk.
    package nonisolated let live: InMemoryAccessState
    /// The launches that are observed now. A secret is sent only to the launch that it was given for. Nil if no secret is
    /// ever sent, as in tests of the store.
    package nonisolated let launches: ObservedLaunches?
    var requestQueue = AccessRequestQueue()
    var userCodeLimiter: UserCodeAttemptLimiter
    var attemptLimiter = FailedAttemptLimiter()
    var dashboardCodes = DashboardCodes()
    var authorizations = OAuthAuthorizations()
    /// Number of committed changes since the start.
    private var commits = 0
    /// Revocations that are in effect but could not be saved. The next commit includes them.
    private var unsaved = ChangeSet()
    /// Endpoint calls that are not yet in the audit log. `oldestBufferedAt` is the time of the first one.
    nonisolated let auditBuffer = AuditBuffer()
    private var oldestBufferedAt: MonotonicTime?
    /// The part of the audit log that is kept.
    var auditRetention = AuditRetention()
    let approvalChangeSubscribers = Broadcast<EndpointID>(slow: .keepsNewest(1_024))
    let inviteChangeSubscribers = Broadcast<Void>(slow: .keepsNewest(1))
    private var lastSave: MonotonicTime
    /// Problems found in the stored files, as sentences for `patchbay doctor`.
    package private(set) var findings: [String]
    /// The reason why the last change could not be saved; nil after a successful commit.
    package private(set) var storageProblem: String?

    package nonisolated var invites: InviteService { InviteService(store: self) }
    package nonisolated var grants: GrantService { GrantService(store: self) }
    package nonisolated var dashboard: DashboardService { DashboardService(store: self) }
    package nonisolated var requests: AccessRequestService { AccessRequestService(store: self) }
    package nonisolated var oauth: OAuthService { OAuthService(store: self) }
    package nonisolated var approvals: EndpointApprovalService { EndpointApprovalService(store: self) }
    package nonisolated var secrets: EndpointSecretService { EndpointSecretService(store: self) }

    /// Opens the state folder, repairs it after a crash, and applies the revocations of the audit log. Blocks; call it
    /// only at startup.
    ///
    /// Sets a damaged database aside and creates an empty one. An empty database accepts no token, so nothing is
    /// revived.
    /// - Parameters:
    ///   - folder: An existing folder that this user owns and no other user can write.
    ///   - credentials: `$CREDENTIALS_DIRECTORY`, if set.
    ///   - logger: Receives the findings.
    ///   - launches: The launches that are observed now; nil if no secret is ever sent.
    ///   - auditSegment: Size in bytes at which a segment of the audit log is full.
    ///   - reading: Reads the machine's clocks.
    ///   - failurePoint: Called at each point where a crash leaves a different state. Only tests use it.
    /// - Throws: `AccessError` when the folder or its files are accessible to other users, or the sealing key is wrong.
    package init(
        in folder: String,
        credentials: String? = nil,
        logger: Logger,
        launches: ObservedLaunches? = nil,
        auditSegment: Int = 8 << 20,
        reading: @escaping @Sendable () -> ClockReading = ClockReading.now,
        failurePoint: @escaping @Sendable (FailurePoint) -> Void = { _ in }
    ) throws {
        try PrivateFile.check(folder: folder)
        let isNew = try !PrivateFile.check(file: "\(folder)/\(AccessDatabase.name)")
        let keys = DerivedKeys(try SealingKeyLoader.load(credentials: credentials, folder: folder, isNew: isNew))
        var (database, contents, findings) = try AccessDatabase.opened(in: folder, keys: keys)
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
        live = InMemoryAccessState(state, clock, reading: reading)
        unsaved = losses
        if !findings.isEmpty {
            let detail = findings.joined(separator: "; ")
            unsaved.events.append(AuditEvent(.repaired, by: .broker, from: .broker, detail: detail))
        }

        writer = ChangeWriter(database, audit, after: recovery, failurePoint: failurePoint)
        auditReader = AuditLogReader(folder)
        self.keys = keys
        self.launches = launches
        self.findings = findings
        self.logger = logger
        self.reading = reading
        userCodeLimiter = contents.userCodeLimiter
        for finding in findings {
            logger.error("a stored access control file has a problem", metadata: ["what": "\(finding)"])
        }
    }

    /// Saves pending changes and closes the database.
    package func close() throws {
        try save()
        try writer.close()
        live.content.withLock { $0.wakeUp }?.finish()
    }

    /// A copy of the current state.
    var state: AccessState { live.content.withLock { $0.state } }

    /// The endpoints that a grant, an open invite, an approval, a denial or a secret names by ID.
    package var namedEndpoints: Set<EndpointID> { state.namedEndpoints }

    nonisolated func now() -> MonotonicTime { live.now() }

    /// Difference between the logical clock and the wall clock; zero when the wall clock is not behind.
    package var wallClockLag: Duration {
        _ = now()
        return live.content.withLock { $0.clock.wallClockLag }
    }

    /// Runs a closure on the store's thread. No other operation runs before the closure ends or awaits.
    func transaction<Value: Sendable>(
        _ body: @Sendable (isolated AccessStore) async throws -> Value
    ) async rethrows -> Value {
        try await body(self)
    }

    /// Saves a change, then applies the change. `ChangeWriter` has the order of the writes. In one step with the change,
    /// and before its subscribers, `update` changes what is not saved.
    func commit(
        _ change: ChangeSet,
        updating update: (inout InMemoryAccessState.Content) -> Void = { _ in }
    ) throws {
        do {
            try write(change, updating: update)
            storageProblem = nil
        } catch let error as AccessError {
            if case .notSaved = error { storageProblem = error.description }
            throw error
        }
    }

    private func write(
        _ change: ChangeSet,
        updating update: (inout InMemoryAccessState.Content) -> Void
    ) throws {
        let now = now()
        var combined = unsaved + change
        let lastUsed = live.content.withLock { $0.unsavedLastUsed }
        let named = Set(combined.grants.map(\.id))
        combined.grants += lastUsed.subtracting(named).compactMap { state.grants[$0] }
        let buffered = auditBuffer.events
        combined.events += buffered
        let wallTime = Date(timeIntervalSince1970: Double(reading().wall) / 1_000)
        try writer.commit(combined, at: now, wallTime: wallTime)
        live.content.withLock { content in
            content.apply(combined)
            update(&content)
            content.unsavedLastUsed.subtract(lastUsed)
        }
        commits += 1
        unsaved = ChangeSet()
        auditBuffer.remove(first: buffered.count)
        oldestBufferedAt = nil
        lastSave = now
        // The change is now in effect, even if the audit file cannot be written. The next operation writes the missing
        // entries first.
        defer {
            if !change.grants.isEmpty || !change.invites.isEmpty { live.wake() }
            for id in combined.changedEndpoints { approvalChangeSubscribers.send(id) }
            if !change.invites.isEmpty || change.spent != nil { inviteChangeSubscribers.send(()) }
        }
        try writer.finish()
    }

    /// Ends grants, invites, approvals or secrets. The change takes effect at once, even if the disk fails. Then saves
    /// it, and closes the affected sessions meanwhile.
    func endAndCommit(_ change: ChangeSet) async throws {
        let cancellations = live.content.withLock { content in
            content.apply(change)
            return content.sessions.removeAll(of: change.endedGrants)
        }
        // Runs in parallel with the commit, because the disk may be slow or full.
        async let areCancelled: Void = GrantSessions.cancel(cancellations)
        let commits = commits
        let result = Result { try commit(change) }
        // A committed change lacks only its audit entry, which the next commit appends.
        if case .failure = result, self.commits == commits { unsaved = unsaved + change }
        await areCancelled
        try result.get()
    }

    func saveUserCodeLimiter() throws { try writer.save(userCodeLimiter) }
}

/// Saving without a change, when `ExpirationService` asks for it.
extension AccessStore {
    /// Returns a new wake-up stream for each wait. A stream whose reader was cancelled is finished and cannot be
    /// used again.
    func makeWakes() -> AsyncStream<Void> {
        let (stream, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        live.content.withLock { $0.wakeUp = continuation }
        auditBuffer.setWakeUp(continuation)
        return stream
    }

    /// Returns the time until buffered audit events have to be written; nil when the buffer is empty.
    func auditFlushDelay(at now: MonotonicTime) -> Duration? {
        let count = auditBuffer.count
        guard count > 0 else { return nil }
        let since = oldestBufferedAt ?? now
        oldestBufferedAt = since
        return count >= AuditBuffer.flushThreshold ? .zero : Self.auditFlushInterval - (now - since)
    }

    /// Saves the clock and the last-use times if the last save is `saveInterval` ago, or if audit events are due.
    func saveIfDue(at now: MonotonicTime) throws {
        let isFlushDue = auditFlushDelay(at: now).map { $0 <= .zero } ?? false
        if now - lastSave >= Self.saveInterval || !unsaved.events.isEmpty || isFlushDue { try save() }
    }

    private func save() throws {
        let isDue = now() - lastSave >= Self.saveInterval
        try commit(ChangeSet())
        if isDue { pruneAuditLog() }
    }

    func expiredSegments() throws -> AuditSegments.Expired? {
        try writer.expiredSegments(auditRetention, at: Date(timeIntervalSince1970: Double(reading().wall) / 1_000))
    }

    func delete(_ expired: AuditSegments.Expired) { writer.delete(expired) }
}

/// The audit log.
extension AccessStore {
    /// Counts a failed attempt, and records the attempt in the audit log unless the client had too many lately.
    ///
    /// - Returns: The error to throw.
    func reject(
        _ token: Token,
        because reason: String,
        saving change: ChangeSet? = nil,
        from source: RequestSource,
        at now: MonotonicTime
    ) throws -> AccessError {
        let pause = attemptLimiter.recordFailure(from: source, at: now)
        if let change {
            // Wrong secrets for an existing invite are always saved.
            try commit(change)
        } else if pause == nil {
            // Records only IDs that exist; an unknown ID may be arbitrary text.
            let event = AuditEvent(
                .refused,
                by: .anonymous,
                from: source,
                invite: state.invites[token.id]?.id,
                grant: state.grants[token.id]?.id,
                detail: reason
            )
            try commit(ChangeSet([event]))
        }
        return pause.map { .tooManyAttempts(retryAfter: $0) } ?? .refused
    }

    /// Counts a malformed token as a failed attempt. The error does not give the reason.
    ///
    /// - Returns: The error to throw, the same as for a rejected token.
    package func rejectMalformedToken(from source: RequestSource) throws -> AccessError {
        try reject(Token(random: .grant), because: "not a token", from: source, at: now())
    }

    /// Records in the audit log that a caller was denied an owner-only operation. Limited to a few entries per minute
    /// and client.
    package func auditDenied(_ action: String, of caller: AuditActor, from source: RequestSource) throws {
        guard attemptLimiter.recordFailure(from: source, at: now()) == nil else { return }
        try commit(ChangeSet([AuditEvent(.refused, by: caller, from: source, detail: action)]))
    }

    /// Records a change of the team in the audit log. Returns when the entry is on disk.
    ///
    /// - Parameters:
    ///   - action: The change.
    ///   - subject: The team or the host.
    ///   - invite: The ID of the invite for the host.
    ///   - useCount: The number of hosts that have used the invite.
    ///   - detail: Further facts in Patchbay's words.
    ///   - principal: The client.
    /// - Throws: `AccessError.notSaved`. The change of the team stands.
    package func auditTeam(
        _ action: AuditEvent.Action,
        of subject: SanitizedText? = nil,
        invite: String? = nil,
        useCount: Int? = nil,
        _ detail: String? = nil,
        by principal: Principal
    ) throws {
        var event = AuditEvent(action, by: principal.actor, from: principal.source, invite: invite, detail: detail)
        event.subject = subject
        event.useCount = useCount
        try commit(ChangeSet([event]))
    }

    /// Records a call of an endpoint in the audit log, within one second and before an orderly shutdown.
    ///
    /// Does not wait for the store's thread, which may be blocked on the disk. A crash may lose the entries of the last
    /// second; nothing else depends on them.
    package nonisolated func auditCall(_ call: EndpointCallEvent, by caller: AuditActor, from source: RequestSource) {
        var event = AuditEvent(.called, by: caller, from: source, endpoint: call.endpoint, detail: call.outcome)
        event.subject = call.subject
        event.bytes = call.bytes
        event.trace = call.trace
        buffer(event)
    }

    /// Records the beginning or the breaking of a lease in the audit log, like a call.
    nonisolated func auditLease(
        _ action: AuditEvent.Action,
        of endpoint: EndpointID,
        _ detail: String,
        by principal: Principal
    ) {
        buffer(AuditEvent(action, by: principal.actor, from: principal.source, endpoint: endpoint, detail: detail))
    }

    /// Records that a client reads a log of a phone: that of an endpoint, or of all apps for nil. Like a call.
    package nonisolated func auditLogRead(of endpoint: EndpointID?, on udid: UDID, by principal: Principal) {
        var event = AuditEvent(.logRead, by: principal.actor, from: principal.source, endpoint: endpoint)
        event.subject = SanitizedText(udid.text, limit: 100)
        buffer(event)
    }

    private nonisolated func buffer(_ event: AuditEvent) {
        var event = event
        event.occurredAt = Date(timeIntervalSince1970: Double(reading().wall) / 1_000)
        guard !auditBuffer.append(event) else { return }
        logger.error(
            "an entry was dropped from the audit log: the buffer is full",
            metadata: ["action": "\(event.action.rawValue)", "endpoint": "\(event.endpoint?.text ?? "")"]
        )
    }

    /// Returns lines of the audit log, oldest first: those after a line number, or the last ones.
    package func auditLines(after number: Int?, limit: Int) async throws -> [Data] {
        try await auditReader.lines(after: number, limit: limit)
    }

    /// Verifies the hash chain of the whole audit log.
    package func verifyAudit() async throws -> AuditVerification {
        try writer.flush()
        return try await auditReader.verify(endingAt: writer.head)
    }
}
