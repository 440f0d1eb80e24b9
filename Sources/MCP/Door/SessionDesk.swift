import JSON

/// What the requests of one client share in the eras with sessions: which of them run, what it wants to hear of, and its
/// stream. All of it may be lost in a restart but for the subscriptions' listeners, who are told to look anew.
package actor SessionDesk {
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
        var logLevel = LogLevel.debug
        var lastUsed = 0
    }

    /// Sessions that are remembered at most, and addresses that one may subscribe to.
    static let limit = 1_024
    static let subscriptionLimit = 256
    /// Questions that wait for one client's answers at a time.
    static let questionLimit = 16

    package nonisolated let key: SessionKey
    private var records: [Session: Record] = [:]
    private var count = 0

    package init(key: SessionKey) { self.key = key }

    /// Makes sure that the broker knows a session, also one of an earlier run.
    ///
    /// - Returns: Whether it was unknown.
    @discardableResult
    func touch(_ session: Session) -> Bool {
        count += 1
        let isNew = records[session] == nil
        if isNew, records.count >= Self.limit { forgetOldest() }
        records[session, default: Record()].lastUsed = count
        return isNew
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
        let id = RPCID.text(SessionKey.randomText())
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

    /// From which level on a client wants log messages: all, where it has not said.
    func logLevel(of session: Session) -> LogLevel { records[session]?.logLevel ?? .debug }

    /// - Throws: When there are too many.
    func subscribe(_ uri: String, of session: Session) throws(RPCError) {
        touch(session)
        guard (records[session]?.subscriptions.count ?? 0) < Self.subscriptionLimit else {
            throw .invalidParams("\(Self.subscriptionLimit) subscriptions are the most that a session may have")
        }
        records[session]?.subscriptions.insert(uri)
    }

    func unsubscribe(_ uri: String, of session: Session) { records[session]?.subscriptions.remove(uri) }

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
    func end(_ session: Session) { records.removeValue(forKey: session)?.stream?.end() }

    /// What runs is never forgotten.
    private func forgetOldest() {
        let idle = records.filter { $0.value.stream == nil && $0.value.running.isEmpty }
        guard let oldest = idle.min(by: { $0.value.lastUsed < $1.value.lastUsed }) else { return }
        records[oldest.key] = nil
    }
}
