import FoundationEssentials
import Model
import Synchronization
import SystemIO

/// The access state in memory, for callers that must not wait for the disk: valid tokens, sessions and deliveries.
///
/// One lock protects the state. The lock is never held during disk I/O, so authenticating a valid token does not wait
/// for a commit. Two operations are atomic under the lock: check a grant and register a session; end a grant and
/// collect its sessions. Only `AccessStore` modifies permissions.
package final class InMemoryAccessState: Sendable {
    struct Content: Sendable {
        var clock: MonotonicWallClock
        var state: AccessState
        /// Incremented whenever a grant ends, or an approval or a secret changes.
        private(set) var generation: UInt64 = 0
        var sessions = GrantSessions()
        /// IDs of grants whose last-use time is not yet saved.
        var unsavedLastUsed: Set<String> = []
        /// Sealed secrets that their apps rejected.
        var rejected: [EndpointID: Data] = [:]
        /// The launches to which the secrets of this run may be sent.
        var presentations: [EndpointID: SecretPresentation] = [:]
        /// The launches that accepted a secret before it was stored.
        var acceptances: [EndpointID: SecretPresentation] = [:]
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

    let content: Mutex<Content>
    private let reading: @Sendable () -> ClockReading

    init(_ state: AccessState, _ clock: MonotonicWallClock, reading: @escaping @Sendable () -> ClockReading) {
        content = Mutex(Content(state, clock))
        self.reading = reading
    }

    func now() -> MonotonicTime {
        let reading = reading()
        return content.withLock { $0.clock.advance(to: reading) }
    }

    /// Verifies the token of a grant, and records the use of a valid one.
    func verify(_ token: Token, from source: RequestSource, user: UInt32? = nil) -> (
        AccessState.TokenVerification, MonotonicTime
    ) {
        let reading = reading()
        return content.withLock { content in
            let now = content.clock.advance(to: reading)
            let result = content.state.verify(token, from: source, user: user, at: now)
            if case .accepted(let record) = result { content.touch(record.id, at: now) }
            return (result, now)
        }
    }

    /// Returns the valid grant that is bound to a remote client's key, and records its use.
    func grant(boundTo key: KeyPin, from source: RequestSource) -> Grant? {
        guard case .remote = source else { return nil }
        let reading = reading()
        return content.withLock { content in
            let now = content.clock.advance(to: reading)
            guard let record = content.state.grantRecord(boundTo: key, at: now) else { return nil }
            content.touch(record.id, at: now)
            return record.grant(at: now)
        }
    }

    /// Wakes `ExpirationService`, because the next deadline may have moved forward.
    func wake() { content.withLock { $0.wakeUp }?.yield() }
}

/// Sessions under grants.
extension InMemoryAccessState {
    /// Returns whether a grant is still valid. For long-running work that does not present its token again.
    package func isLive(_ grant: String) -> Bool {
        let now = now()
        return content.withLock { $0.isLive(grant, at: now) }
    }

    /// Returns a grant that is valid now.
    func grant(_ id: String) -> Grant? {
        let now = now()
        return content.withLock { content in
            content.isLive(id, at: now) ? content.state.grants[id]?.grant(at: now) : nil
        }
    }

    /// Registers a session under a grant.
    ///
    /// - Parameters:
    ///   - grant: The grant's ID.
    ///   - onRevoke: Closes the session, and returns when no more bytes are relayed. Called at most once, perhaps
    ///     before this function returns. Runs in the task that ends the grant; that task may be cancelled, which must
    ///     not shorten the call.
    /// - Returns: The session, to pass to `unregister` at its own end.
    /// - Throws: `AccessError.refused` when the grant is no longer valid.
    package func register(under grant: String, onRevoke: @escaping @Sendable () async -> Void) throws -> GrantSession {
        try register(under: grant, signal: {}, finish: onRevoke)
    }

    /// Removes a session that has ended by itself.
    package func unregister(_ session: GrantSession) { content.withLock { $0.sessions.remove(session) } }

    /// Runs a closure in a session. The closure is cancelled when the grant ends, and the revocation waits until it has
    /// returned.
    ///
    /// - Throws: The closure's error, or `AccessError.refused` when the grant ended.
    package func withSession<Value: Sendable>(
        under grant: String,
        _ body: @escaping @Sendable () async throws -> Value
    ) async throws -> Value {
        let (end, endSignal) = AsyncStream.makeStream(of: Never.self)
        let finished = AsyncLatch()
        defer { finished.open() }
        let session = try register(
            under: grant,
            signal: { endSignal.finish() },
            finish: { await finished.wait() }
        )
        let result: Result<Value, any Error> = await GrantSession.$current.withValue(session) {
            await withTaskGroup(of: Result<Value, any Error>.self) { group in
                group.addTask { await Self.result(of: body) }
                group.addTask {
                    for await _ in end {}
                    return .failure(AccessError.refused)
                }
                let first = await group.next() ?? .failure(CancellationError())
                group.cancelAll()
                return first
            }
        }
        unregister(session)
        return try result.get()
    }

    private static func result<Value: Sendable>(
        of body: @Sendable () async throws -> Value
    ) async -> Result<Value, any Error> {
        do { return .success(try await body()) } catch { return .failure(error) }
    }

    private func register(
        under grant: String,
        signal: @escaping @Sendable () -> Void,
        finish: @escaping @Sendable () async -> Void
    ) throws -> GrantSession {
        let reading = reading()
        let (session, isPolled) = try content.withLock { content in
            let now = content.clock.advance(to: reading)
            guard content.isLive(grant, at: now) else { throw AccessError.refused }
            let isPolled = content.sessions.isPolled
            return (content.sessions.register(under: grant, signal: signal, finish: finish), isPolled)
        }
        if !isPolled { wake() }
        return session
    }
}

/// Checks for deliveries to apps: no delivery happens after its permission ended.
extension InMemoryAccessState {
    /// The generation of grants, approvals and secrets. Read the generation before looking up routes and secrets.
    package var generation: UInt64 { content.withLock { $0.generation } }

    /// Runs the write of a delivery, unless a grant, an approval or a secret ended or changed since a generation.
    ///
    /// Holds the lock during the write, so no grant ends and no approval changes meanwhile. The write must not block.
    /// - Parameters:
    ///   - grant: The caller's grant; nil for an owner.
    ///   - generation: Value of `generation` before the delivery's routes and secret were looked up.
    ///   - write: Must return immediately.
    /// - Returns: The result of the write; nil when the write did not run.
    /// - Throws: The error of the write.
    package func deliver<Value: Sendable, Failure: Error>(
        under grant: String?,
        since generation: UInt64,
        _ write: () throws(Failure) -> Value
    ) throws(Failure) -> Value? {
        let reading = reading()
        return try content.withLock { (content) throws(Failure) -> Value? in
            guard content.generation == generation else { return nil }
            if let grant {
                let now = content.clock.advance(to: reading)
                guard content.isLive(grant, at: now) else { return nil }
            }
            return try write()
        }
    }
}
