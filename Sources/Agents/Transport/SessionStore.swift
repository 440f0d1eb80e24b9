import Apps
package import FoundationEssentials
import Model
import ServiceLifecycle
import SystemIO

/// The state of client sessions: running requests, subscriptions and the stream.
///
/// Subscriptions survive a restart of the broker. A client that reconnects afterwards is told to read everything again.
package actor SessionStore: Service {
    /// A client's session. The same ID of another holder is another session.
    struct Session: Hashable, Sendable {
        let id: String
        let holder: String
    }

    private struct Record {
        var subscriptions: Set<String> = []
        var stream: (number: Int, end: @Sendable () -> Void)?
        var inFlight: [RPCID: InFlightRequest] = [:]
        /// The requests to the client that have no response yet.
        var serverRequests: [RPCID: SuspendedRequest] = [:]
        var logLevel: LogLevel?
        var lastUsed = 0
        var lastSeen: Date
        /// True for a session of an earlier run without a stream in this run.
        var isRestored = true
    }

    /// The maximum number of stored sessions, and of subscriptions per session.
    static let limit = 1_024
    static let subscriptionLimit = 256
    /// The maximum number of concurrent requests to one client.
    static let serverRequestLimit = 16

    package nonisolated let key: SessionIDSigner
    nonisolated let endedSessions = EndedSessions()
    private var records: [Session: Record] = [:]
    /// The programs behind the sessions and the requests without one.
    var agentTable = AgentTable()
    private var sequence = 0

    let now: @Sendable () -> Date
    private let persist: @Sendable ([PersistedSubscriptions]) async -> Void
    private nonisolated let (saveSignals, saveSignal) = AsyncStream.makeStream(
        of: Void.self,
        bufferingPolicy: .bufferingNewest(1)
    )

    /// Creates a store.
    ///
    /// - Parameters:
    ///   - key: Signs the session IDs.
    ///   - persisted: The subscriptions of earlier runs.
    ///   - now: The current time, for expiry.
    ///   - persist: Saves the subscriptions after a change.
    package init(
        key: SessionIDSigner,
        persisted: [PersistedSubscriptions] = [],
        now: @escaping @Sendable () -> Date = { Date() },
        persist: @escaping @Sendable ([PersistedSubscriptions]) async -> Void = { _ in }
    ) {
        self.key = key
        self.now = now
        self.persist = persist
        for persisted in PersistedSubscriptions.selection(of: persisted, at: now())
        where key.version(of: persisted.session) != nil {
            records[Session(id: persisted.session, holder: persisted.holder)] = Record(
                subscriptions: Set(persisted.addresses),
                lastSeen: persisted.lastUsedAt
            )
        }
    }

    package func run() async throws {
        await cancelWhenGracefulShutdown { [saveSignals] in for await _ in saveSignals { await self.save() } }
        // Saved at the end to record connected clients as last used now.
        await save()
    }

    private func save() async {
        let now = now()
        let all = records.map { session, record in
            PersistedSubscriptions(
                session: session.id,
                holder: session.holder,
                addresses: record.subscriptions.filter { $0.utf8.count <= PersistedSubscriptions.lengthLimit }.sorted(),
                lastUsedAt: record.stream == nil && record.inFlight.isEmpty ? record.lastSeen : now
            )
        }
        await persist(PersistedSubscriptions.selection(of: all, at: now))
    }

    /// Marks a session as one of this run: a new one, or one whose stream is resumed.
    ///
    /// - Returns: True for the first stream of a session of an earlier run: the client may have missed changes.
    @discardableResult
    func markCurrent(_ session: Session) -> Bool {
        touch(session)
        defer { records[session]?.isRestored = false }
        return records[session]?.isRestored == true
    }

    /// Records the use of a session, and adds a session of an earlier run.
    func touch(_ session: Session) {
        sequence += 1
        if records[session] == nil, records.count >= Self.limit { removeOldestIdle() }
        records[session, default: Record(lastSeen: now())].lastUsed = sequence
        records[session]?.lastSeen = now()
    }

    /// Records a running request, so that the client can cancel it.
    func begin(_ request: InFlightRequest, _ id: RPCID, of session: Session) {
        touch(session)
        records[session]?.inFlight[id] = request
    }

    /// Sends a message on the stream of any running request of the session.
    ///
    /// - Returns: False if no running request has a stream.
    @discardableResult
    func send(_ message: RPCMessage, to session: Session) -> Bool {
        records[session]?.inFlight.values.contains { $0.send(message) } ?? false
    }

    func end(request id: RPCID, of session: Session) { records[session]?.inFlight[id] = nil }

    /// Carries out a cancellation or a response of a client. Others, and those about a request that this session does not
    /// have, are ignored.
    func receive(_ message: RPCMessage, of session: Session) {
        switch message {
        case .notification(let notification) where notification.method == "notifications/cancelled":
            guard let id = notification.params?["requestId"].flatMap(RPCID.init) else { return }
            records[session]?.inFlight.removeValue(forKey: id)?.end(with: .cancelled)
        case .response(let id?, let outcome):
            records[session]?.serverRequests.removeValue(forKey: id)?.complete(outcome)
        case .request, .notification, .response: break
        }
    }

    /// Sends a request to a client under an unguessable ID, and tells the client if the app no longer waits.
    ///
    /// - Parameters:
    ///   - request: The request of the app.
    ///   - session: The session of the client.
    ///   - write: Writes a message on a stream to the client. Returns false if no stream takes the message.
    /// - Returns: The client's response.
    func ask(
        _ request: SuspendedRequest,
        of session: Session,
        write: @Sendable (RPCMessage) async -> Bool
    ) async -> Result<JSON, RPCError> {
        touch(session)
        guard (records[session]?.serverRequests.count ?? 0) < Self.serverRequestLimit else {
            return .failure(.internalError("the client has \(Self.serverRequestLimit) unanswered requests already"))
        }
        let id = RPCID.text(Base62.random128Bits())
        records[session]?.serverRequests[id] = request
        defer { records[session]?.serverRequests[id] = nil }
        guard await write(.request(RPCRequest(id: id, method: request.method, params: request.params))) else {
            return .failure(.internalError("the client does not read its stream"))
        }
        do { return try await request.answer() } catch {
            let end = RPCNotification(method: "notifications/cancelled", params: ["requestId": id.json])
            _ = await write(.notification(end))
            return .failure(.internalError("the request was cancelled"))
        }
    }

    func setLogLevel(_ level: LogLevel, of session: Session) {
        touch(session)
        records[session]?.logLevel = level
    }

    /// Returns the log level that the client set; nil if it set none.
    func logLevel(of session: Session) -> LogLevel? { records[session]?.logLevel }

    /// Subscribes a session to a resource.
    ///
    /// - Throws: If the session has too many subscriptions or the URI is too long.
    func subscribe(_ uri: String, of session: Session) throws(RPCError) {
        touch(session)
        guard (records[session]?.subscriptions.count ?? 0) < Self.subscriptionLimit else {
            throw .invalidParams("a session can have at most \(Self.subscriptionLimit) subscriptions")
        }
        guard uri.utf8.count <= PersistedSubscriptions.lengthLimit else { throw .uriTooLong }
        records[session]?.subscriptions.insert(uri)
        saveSignal.yield()
    }

    func unsubscribe(_ uri: String, of session: Session) {
        records[session]?.subscriptions.remove(uri)
        saveSignal.yield()
    }

    /// Returns the URIs of the resources that the client subscribed to.
    func subscriptions(of session: Session) -> Set<String> { records[session]?.subscriptions ?? [] }

    func isSubscribed(_ uri: String, in session: Session) -> Bool {
        records[session]?.subscriptions.contains(uri) ?? false
    }

    /// Replaces the stream of a session. No message may be sent on two streams (MCP 2025-11-25, transports), and a
    /// client that opens a second one has lost the first.
    ///
    /// - Returns: The number for `closeStream`.
    func openStream(of session: Session, end: @escaping @Sendable () -> Void) -> Int {
        touch(session)
        records[session]?.stream?.end()
        records[session]?.stream = (sequence, end)
        return sequence
    }

    func closeStream(_ number: Int, of session: Session) {
        guard records[session]?.stream?.number == number else { return }
        records[session]?.stream = nil
    }

    /// Ends a session at the request of its client. Later requests with its ID get 404.
    func end(_ session: Session) {
        endedSessions.insert(session)
        agentTable.remove(AgentTable.Key(id: session.id, holder: session.holder))
        records.removeValue(forKey: session)?.stream?.end()
        saveSignal.yield()
    }

    /// Removes the least recently used session without a stream and without running requests, of the holder with the most
    /// sessions. A holder thus loses its sessions only to its own new ones, or if no holder has more.
    private func removeOldestIdle() {
        let idle = records.filter { $0.value.stream == nil && $0.value.inFlight.isEmpty }
        let counts = Dictionary(grouping: records.keys, by: \.holder).mapValues(\.count)
        let oldest = idle.min { first, second in
            (-(counts[first.key.holder] ?? 0), first.value.lastUsed) < (
                -(counts[second.key.holder] ?? 0), second.value.lastUsed
            )
        }
        guard let oldest else { return }
        records[oldest.key] = nil
    }
}
