package import FoundationEssentials
import JSON
import ServiceLifecycle

/// What the requests of one client share in the eras with sessions: which of them run, what it wants to hear of, and its
/// stream. What it wants to hear of outlives the broker; whoever listens is told to look anew after a restart.
package actor SessionStore: Service {
    /// One client's session; of another holder, the same id is another session.
    struct Session: Hashable, Sendable {
        let id: String
        let holder: String
    }

    private struct Running {
        /// Nil where its client reads no stream.
        let tell: (@Sendable (RPCMessage) -> Bool)?
        let cancel: @Sendable () -> Void
    }

    private struct Record {
        var subscriptions: Set<String> = []
        var stream: (number: Int, end: @Sendable () -> Void)?
        var running: [RPCID: Running] = [:]
        /// What the client is being asked.
        var questions: [RPCID: @Sendable (Result<JSON, RPCError>) -> Void] = [:]
        var logLevel: LogLevel?
        var lastUsed = 0
        var lastSeen: Date
        /// Of an earlier run, and its client has had no stream in this one.
        var isBehind = true
    }

    /// Sessions that are remembered at most, and addresses that one may subscribe to.
    static let limit = 1_024
    static let subscriptionLimit = 256
    /// Questions that wait for one client's answers at a time.
    static let questionLimit = 16

    package nonisolated let key: SessionIDSigner
    private var records: [Session: Record] = [:]
    private var count = 0

    private let now: @Sendable () -> Date
    private let keep: @Sendable ([PersistedSubscriptions]) async -> Void
    private nonisolated let (wakes, wake) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))

    /// - Parameters:
    ///   - key: Signs the ids.
    ///   - kept: What clients of earlier runs subscribed to.
    ///   - now: The time, for how long that is kept.
    ///   - keep: Takes what is to be kept when it changes, while this runs.
    package init(
        key: SessionIDSigner,
        kept: [PersistedSubscriptions] = [],
        now: @escaping @Sendable () -> Date = { Date() },
        keep: @escaping @Sendable ([PersistedSubscriptions]) async -> Void = { _ in }
    ) {
        self.key = key
        self.now = now
        self.keep = keep
        for kept in PersistedSubscriptions.selection(of: kept, at: now()) where key.revision(of: kept.session) != nil {
            records[Session(id: kept.session, holder: kept.holder)] = Record(
                subscriptions: Set(kept.addresses),
                lastSeen: kept.lastUsed
            )
        }
    }

    package func run() async throws {
        await cancelWhenGracefulShutdown { [wakes] in for await _ in wakes { await self.save() } }
        // Who is here now was here last when the broker ended.
        await save()
    }

    private func save() async {
        let now = now()
        let all = records.map { session, record in
            PersistedSubscriptions(
                session: session.id,
                holder: session.holder,
                addresses: record.subscriptions.filter { $0.utf8.count <= PersistedSubscriptions.lengthLimit }.sorted(),
                lastUsed: record.stream == nil && record.running.isEmpty ? record.lastSeen : now
            )
        }
        await keep(PersistedSubscriptions.selection(of: all, at: now))
    }

    /// A session that begins now.
    func begin(_ session: Session) {
        touch(session)
        records[session]?.isBehind = false
    }

    /// - Returns: Whether the session's client may have missed something: it is of an earlier run, and this its first stream.
    func catchUp(_ session: Session) -> Bool {
        touch(session)
        defer { records[session]?.isBehind = false }
        return records[session]?.isBehind == true
    }

    /// Makes sure that the broker knows a session, also one of an earlier run.
    func touch(_ session: Session) {
        count += 1
        if records[session] == nil, records.count >= Self.limit { forgetOldest() }
        records[session, default: Record(lastSeen: now())].lastUsed = count
        records[session]?.lastSeen = now()
    }

    /// Notes a request, so that it can be called off.
    func enter(
        _ id: RPCID,
        of session: Session,
        tell: (@Sendable (RPCMessage) -> Bool)? = nil,
        cancel: @escaping @Sendable () -> Void
    ) {
        touch(session)
        records[session]?.running[id] = Running(tell: tell, cancel: cancel)
    }

    /// Tells a client something on the stream of any of its requests.
    ///
    /// - Returns: False where none runs that could carry it.
    @discardableResult
    func tell(_ message: RPCMessage, to session: Session) -> Bool {
        records[session]?.running.values.contains { $0.tell?(message) == true } ?? false
    }

    func leave(_ id: RPCID, of session: Session) { records[session]?.running[id] = nil }

    func cancel(_ id: RPCID, of session: Session) { records[session]?.running.removeValue(forKey: id)?.cancel() }

    /// Notes a question, under an id that nobody can guess.
    ///
    /// - Returns: Nil when the client has too many before it.
    func pose(
        to session: Session,
        _ answer: @escaping @Sendable (Result<JSON, RPCError>) -> Void
    ) -> RPCID? {
        touch(session)
        guard (records[session]?.questions.count ?? 0) < Self.questionLimit else { return nil }
        let id = RPCID.text(SessionIDSigner.randomText())
        records[session]?.questions[id] = answer
        return id
    }

    /// Takes what a client answered; what it was not asked, or not in this session, is nothing to anybody.
    func settle(_ id: RPCID, of session: Session, _ outcome: Result<JSON, RPCError>) {
        records[session]?.questions.removeValue(forKey: id)?(outcome)
    }

    func withdraw(_ id: RPCID, of session: Session) { records[session]?.questions[id] = nil }

    func setLogLevel(_ level: LogLevel, of session: Session) {
        touch(session)
        records[session]?.logLevel = level
    }

    /// From which level on a client wants log messages; nil where it has not said.
    func logLevel(of session: Session) -> LogLevel? { records[session]?.logLevel }

    /// - Throws: When there are too many.
    func subscribe(_ uri: String, of session: Session) throws(RPCError) {
        touch(session)
        guard (records[session]?.subscriptions.count ?? 0) < Self.subscriptionLimit else {
            throw .invalidParams("\(Self.subscriptionLimit) subscriptions are the most that a session may have")
        }
        guard uri.utf8.count <= PersistedSubscriptions.lengthLimit else { throw .longAddress }
        records[session]?.subscriptions.insert(uri)
        wake.yield()
    }

    func unsubscribe(_ uri: String, of session: Session) {
        records[session]?.subscriptions.remove(uri)
        wake.yield()
    }

    /// What a client wants to hear of.
    func subscriptions(of session: Session) -> Set<String> { records[session]?.subscriptions ?? [] }

    func isSubscribed(_ uri: String, _ session: Session) -> Bool {
        records[session]?.subscriptions.contains(uri) ?? false
    }

    /// Puts a stream in the place of the one that was there: no message may go over two of them (2025-11-25, transports),
    /// and a client that opens another one has lost the first.
    ///
    /// - Returns: Its number, for `close`.
    func open(_ session: Session, end: @escaping @Sendable () -> Void) -> Int {
        touch(session)
        records[session]?.stream?.end()
        records[session]?.stream = (count, end)
        return count
    }

    func close(_ number: Int, of session: Session) {
        guard records[session]?.stream?.number == number else { return }
        records[session]?.stream = nil
    }

    /// The client is done. Its id stays valid: nothing of a client's is ever answered with 404.
    func end(_ session: Session) {
        records.removeValue(forKey: session)?.stream?.end()
        wake.yield()
    }

    /// What runs is never forgotten.
    private func forgetOldest() {
        let idle = records.filter { $0.value.stream == nil && $0.value.running.isEmpty }
        guard let oldest = idle.min(by: { $0.value.lastUsed < $1.value.lastUsed }) else { return }
        records[oldest.key] = nil
    }
}
