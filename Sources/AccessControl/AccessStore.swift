import Crypto
import FoundationEssentials
package import Logging
import Model
import Synchronization
import SystemIO

/// Who may do what: every invite, grant, approval and endpoint secret, on the disk before anybody is told.
///
/// What it promises holds through kill -9 and power loss: when a call returns, what it did is in the database (WAL,
/// `synchronous=FULL`) and in the audit log (fdatasync(2)). When it throws `notSaved`, nothing happened, or it is committed
/// and goes into the log before anything else does; what was to be ended is ended in any case. Runs on a thread of its own, because all of that waits for the disk.
package actor AccessStore {
    package nonisolated var unownedExecutor: UnownedSerialExecutor { Self.thread.asUnownedSerialExecutor() }
    private static let thread = ThreadExecutor(named: "patchbay-pair")
    /// How long what grants were last used may be unsaved, and with it the time.
    static let savePause: Duration = .seconds(60)

    let logger: Logger
    let keys: Keyring
    let reading: @Sendable () -> ClockReading
    private let database: AccessDatabase
    private var audit: AuditLog
    nonisolated let auditCheck: AuditLogReader
    private let crash: @Sendable (FailurePoint) -> Void

    nonisolated let books: Mutex<SharedAccessState>
    var desk = AccessRequestQueue()
    var gate: UserCodeAttemptLimiter
    var limiter = FailedAttemptLimiter()
    private var head: AuditEntry.Head
    /// Lines that are committed and not in the file yet, and the last one that is.
    private var pending: [PersistedState.PendingLine] = []
    private var flushed: Int
    /// How many changes are in the database since the start.
    private var commits = 0
    /// What ended and could not be saved; it goes with the next operation.
    private var unsaved = ChangeSet()
    /// Calls of endpoints that are not in the log yet, and since when.
    nonisolated let notes = AuditBuffer()
    private var notesSince: MonotonicTime?
    let trustFollowers = Broadcast<EndpointID>(slow: .keepsNewest(1_024))
    private var saved: MonotonicTime
    /// What was found wrong with what is kept, as sentences for `doctor`.
    package private(set) var findings: [String]
    /// Why the last change could not be saved; nil when it was.
    package private(set) var storageProblem: String?

    /// Opens what is kept in a folder, puts in order what a crash left, and takes away what the audit log says is over.
    /// Blocks; for the start only.
    ///
    /// A database that is damaged is set aside: an empty one lets nobody in, so that this revives nothing.
    /// - Parameters:
    ///   - folder: Exists, is ours, and nobody else can write it.
    ///   - credentials: `$CREDENTIALS_DIRECTORY`, if any.
    ///   - logger: Where findings are told too.
    ///   - auditSegment: With this many bytes a segment of the audit log is full.
    ///   - reading: The machine's clocks.
    ///   - crash: Called at each point at which a crash matters; only tests do anything there.
    /// - Throws: `AccessError` when it must not start: others can write there, the key is another one.
    package init(
        in folder: String,
        credentials: String? = nil,
        logger: Logger,
        auditSegment: Int = 8 << 20,
        reading: @escaping @Sendable () -> ClockReading = ClockReading.now,
        crash: @escaping @Sendable (FailurePoint) -> Void = { _ in }
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
        saved = clock.now
        var ledger = AccessState(contents)
        let losses = ledger.replay(recovery.unknown, at: clock.now)
        ledger.apply(losses)
        books = Mutex(SharedAccessState(ledger, clock))
        unsaved = losses
        if !findings.isEmpty {
            var event = AuditEvent(.repaired, by: .broker, from: .broker)
            event.detail = findings.joined(separator: "; ")
            unsaved.events.append(event)
        }

        self.database = database
        self.audit = audit
        auditCheck = AuditLogReader(folder)
        self.keys = keys
        self.findings = findings
        self.logger = logger
        self.reading = reading
        self.crash = crash
        head = recovery.head
        pending = recovery.missing
        flushed = recovery.written.number
        gate = contents.gate
        for finding in findings {
            logger.error("something is wrong with what pairing keeps", metadata: ["what": "\(finding)"])
        }
    }

    /// Saves what is not saved yet and closes the files.
    package func close() throws {
        try save()
        try database.close()
        books.withLock { $0.wakeUp }?.finish()
    }

    /// As it is now.
    var ledger: AccessState { books.withLock { $0.ledger } }

    /// How far the wall clock is behind the time that counts; zero when it is not.
    package var clockBehind: Duration {
        let reading = reading()
        return books.withLock { books in
            books.clock.advance(to: reading)
            return books.clock.behind
        }
    }

    /// Everything that was ever done here, checked link by link.
    package func verifyAudit() async throws -> AuditReport {
        try flush()
        return try await auditCheck.run(head: head)
    }

    nonisolated func now() -> MonotonicTime {
        let reading = reading()
        return books.withLock { $0.clock.advance(to: reading) }
    }

    /// Makes a change last, and then true.
    ///
    /// The order, and what a crash leaves: room for the audit line is reserved; the rows and the line are committed in one
    /// transaction; the line goes to the file and fdatasync(2) returns; the caller is told. Before the commit nothing has
    /// happened. After it everything has, and the next start writes the line that is missing in the file.
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
        var whole = unsaved + change
        let named = Set(whole.grants.map(\.id))
        let (restless, used) = books.withLock { books in
            (books.unsavedUses, books.unsavedUses.subtracting(named).compactMap { books.ledger.grants[$0] })
        }
        whole.grants += used
        let notes = self.notes.notes
        whole.events += notes
        var next = head
        let lines = try whole.events.map { event in
            let wall = Date(timeIntervalSince1970: Double(reading().wall) / 1_000)
            let line = AuditEntry(number: next.number + 1, before: next.hash, wall: wall, effective: now, event: event)
            let (text, head) = try line.written()
            next = head
            return PersistedState.PendingLine(number: line.number, text: text)
        }
        try audit.reserve(for: lines.reduce(0) { $0 + $1.text.count + 1 })
        try database.commit(whole, lines: lines, head: next, flushed: flushed, highWater: now, crash: crash)
        books.withLock { books in
            books.apply(whole)
            books.unsavedUses.subtract(restless)
        }
        commits += 1
        head = next
        pending += lines
        unsaved = ChangeSet()
        self.notes.remove(first: notes.count)
        notesSince = nil
        saved = now
        // From here on it is true, also where the log's file takes no line: the next operation writes the line first.
        defer {
            if !change.grants.isEmpty || !change.invites.isEmpty { wake() }
            tellTrust(whole)
        }
        try flush()
        crash(.beforeReply)
    }

    /// Ends something: true at once, whatever the disk says; then lasting, and cut meanwhile.
    func close(by change: ChangeSet) async throws {
        let cuts = books.withLock { books in
            books.apply(change)
            return books.uses.take(change.endedGrants)
        }
        // Not behind the disk, which may be slow or full.
        async let isCut: Void = GrantSessions.end(cuts)
        let commits = commits
        let result = Result { try commit(change) }
        // A change that is committed waits for its line alone.
        if case .failure = result, self.commits == commits { unsaved = unsaved + change }
        await isCut
        try result.get()
    }

    /// How long until what was noted has to be written; nil when there is nothing.
    func noteDeadline(at now: MonotonicTime) -> Duration? {
        let count = notes.count
        guard count > 0 else { return nil }
        let since = notesSince ?? now
        notesSince = since
        return count >= AuditBuffer.plenty ? .zero : Self.notePause - (now - since)
    }

    func keepGate() throws { try database.keep(gate, as: "gate") }

    /// Tells whoever waits for the next deadline that there may be an earlier one.
    nonisolated func wake() { books.withLock { $0.wakeUp }?.yield() }

    /// One for each time that somebody waits: a stream whose reader is cancelled is over.
    func makeWakes() -> AsyncStream<Void> {
        let (stream, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        books.withLock { $0.wakeUp = continuation }
        notes.wake(continuation)
        return stream
    }

    /// Saves the time, and which grants were used, when that was long ago.
    func saveIfDue(at now: MonotonicTime) throws {
        let isNoteDue = noteDeadline(at: now).map { $0 <= .zero } ?? false
        if now - saved >= Self.savePause || !unsaved.events.isEmpty || isNoteDue { try save() }
    }

    private func save() throws { try commit(ChangeSet()) }

    /// Brings the audit file up to what is committed.
    private func flush() throws {
        guard let last = pending.last else { return }
        try audit.append(pending.map(\.text), crash: crash)
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
                "\(path) was damaged and is kept as \(aside); nobody is paired any more, so pair again, or stop the broker and put a"
                + " good copy there"
            return (database, try database.read(), [finding])
        }
    }
}

/// What counts at this moment: the time, the ledger, and what lives under grants.
///
/// It stands behind one lock that nobody holds while a disk is waited for, so that whoever shows a token need not wait for what
/// somebody else has written. Looking whether a grant counts and opening something under it are one step, and so are ending the
/// grant and taking away what lives under it. Only the store, one operation after the other, changes who may do what.
struct SharedAccessState: Sendable {
    var clock: MonotonicWallClock
    var ledger: AccessState
    /// Rises whenever a grant ends, or an approval or a secret changes.
    private(set) var generation: UInt64 = 0
    var uses = GrantSessions()
    /// Grants whose last use is not on the disk yet.
    var unsavedUses: Set<String> = []
    /// Secrets that their apps did not take, as they are kept.
    var rejected: [EndpointID: Data] = [:]
    /// Told whenever something may end earlier than was known.
    var wakeUp: AsyncStream<Void>.Continuation?

    init(_ ledger: AccessState, _ clock: MonotonicWallClock) {
        self.ledger = ledger
        self.clock = clock
    }

    mutating func apply(_ change: ChangeSet) {
        ledger.apply(change)
        if change.altersTrust { generation &+= 1 }
    }

    /// Whether a grant counts at that time.
    func isLive(_ grant: String, at now: MonotonicTime) -> Bool {
        ledger.grants[grant].map { $0.end(at: now) == nil } ?? false
    }

    /// Notes that a grant is used.
    mutating func touch(_ grant: String, at now: MonotonicTime) {
        ledger.touch(grant, at: now)
        unsavedUses.insert(grant)
    }
}

/// What a delivery to an app needs of pairing, so that none happens after the end of what allowed it.
extension AccessStore {
    /// The state of grants, approvals and secrets: ask for it before you look up what a delivery needs.
    package nonisolated var generation: UInt64 { books.withLock { $0.generation } }

    /// Runs the write of a delivery, if nothing that could allow it has ended or changed since a generation.
    ///
    /// No grant ends and no approval changes while the write runs, so the write must not block.
    /// - Parameters:
    ///   - grant: The caller's grant; nil for an owner.
    ///   - generation: What `generation` was before the delivery's routes and secret were looked up.
    ///   - write: Returns at once.
    /// - Returns: Nil when the write was not run.
    /// - Throws: What the write throws.
    package nonisolated func deliver<Value: Sendable, Failure: Error>(
        under grant: String?,
        since generation: UInt64,
        _ write: () throws(Failure) -> Value
    ) throws(Failure) -> Value? {
        let reading = reading()
        return try books.withLock { (books) throws(Failure) -> Value? in
            guard books.generation == generation else { return nil }
            if let grant {
                let now = books.clock.advance(to: reading)
                guard books.isLive(grant, at: now) else { return nil }
            }
            return try write()
        }
    }
}
