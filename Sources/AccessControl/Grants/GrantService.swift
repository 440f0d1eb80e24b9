import Crypto
import FoundationEssentials
package import Model
import Synchronization
import SystemIO

extension AccessStore {
    /// Every grant, newest first, including those that ended in the last day.
    package var grants: [Grant] {
        let now = now()
        return state.grants.values.sorted { $0.createdAt > $1.createdAt }.map { $0.grant(at: now) }
    }

    /// Returns the grant that a token belongs to, and records its use. A valid token does not wait for the store's
    /// thread.
    ///
    /// - Throws: `AccessError.refused`, the same for every reason, or `.tooManyAttempts`.
    package nonisolated func authenticate(_ token: Token, from source: RequestSource) async throws -> Grant {
        let reading = reading()
        let grant = sharedState.withLock { shared -> Grant? in
            let now = shared.clock.advance(to: reading)
            guard case .accepted(let record) = shared.state.verify(token, from: source, at: now) else { return nil }
            shared.touch(record.id, at: now)
            return record.grant(at: now)
        }
        if let grant { return grant }
        return try await authenticateIsolated(token, from: source)
    }

    private func authenticateIsolated(_ token: Token, from source: RequestSource) async throws -> Grant {
        let now = now()
        let record = try await accept(token, from: source, at: now)
        sharedState.withLock { $0.touch(record.id, at: now) }
        return record.grant(at: now)
    }

    /// Returns whether a grant is still valid. For long-running work that does not present its token again.
    package nonisolated func isLive(_ grant: String) -> Bool {
        let reading = reading()
        return sharedState.withLock { shared in
            let now = shared.clock.advance(to: reading)
            return shared.isLive(grant, at: now)
        }
    }

    /// Replaces a grant's secret. The caller presents the current one.
    ///
    /// `grace` is the time in seconds, 0 to 60, for which the old secret stays valid. A later use of the old secret
    /// ends the grant and its descendants.
    package func rotate(_ token: Token, grace: Int = 0, from source: RequestSource) async throws -> (Grant, Token) {
        let now = now()
        let record = try await accept(token, from: source, at: now)
        guard token.digest == record.digest else {
            throw try reject(token, because: "replaced secret", from: source, at: now)
        }
        let new = Token(random: .grant).withID(record.id)
        let change = try state.rotate(record, to: new, grace: grace, from: source, at: now)
        try commit(change)
        return (change.grants[0].grant(at: now), new)
    }

    /// Creates a child grant with a part of a grant's permissions. The API has verified that the caller holds the
    /// parent.
    ///
    /// Ignores the terms that only concern invites.
    package func delegate(
        under parent: String,
        to name: SanitizedText,
        _ terms: InviteTerms,
        from source: RequestSource
    ) throws -> (Grant, Token) {
        let now = now()
        var token = Token(random: .grant)
        while state.grants[token.id] != nil { token = Token(random: .grant) }
        let change = try state.child(of: parent, as: token, name: name, terms: terms, from: source, at: now)
        try commit(change)
        return (change.grants[0].grant(at: now), token)
    }

    /// Ends one grant with its descendants, one invite, or all of them. On return the change is saved and every session
    /// of those grants is closed.
    ///
    /// - Returns: The IDs that ended.
    /// - Throws: `AccessError.notFound`; `.notSaved`, after which they stay ended until the broker stops.
    @discardableResult
    package func revoke(_ what: RevocationTarget, by caller: AuditActor, from source: RequestSource) async throws
        -> [String]
    {
        let change = try state.revoke(what, by: caller, from: source, at: now())
        try await endAndCommit(change)
        return change.events.flatMap { $0.ended ?? [] }
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
    package nonisolated func register(
        under grant: String,
        onRevoke: @escaping @Sendable () async -> Void
    ) throws -> GrantSession {
        try register(under: grant, signal: {}, finish: onRevoke)
    }

    /// Removes a session that has ended by itself.
    package nonisolated func unregister(_ session: GrantSession) {
        sharedState.withLock { $0.sessions.remove(session) }
    }

    /// Runs a closure in a session. The closure is cancelled when the grant ends, and the revocation waits until it has
    /// returned.
    ///
    /// - Throws: The closure's error, or `AccessError.refused` when the grant ended.
    package nonisolated func withSession<Value: Sendable>(
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

    private nonisolated func register(
        under grant: String,
        signal: @escaping @Sendable () -> Void,
        finish: @escaping @Sendable () async -> Void
    ) throws -> GrantSession {
        let reading = reading()
        let (session, isPolled) = try sharedState.withLock { shared in
            let now = shared.clock.advance(to: reading)
            guard let record = shared.state.grants[grant], record.endReason(at: now) == nil else {
                throw AccessError.refused
            }
            let isPolled = shared.sessions.isPolled
            return (shared.sessions.register(under: grant, signal: signal, finish: finish), isPolled)
        }
        if !isPolled { wake() }
        return session
    }

    private func accept(_ token: Token, from source: RequestSource, at now: MonotonicTime) async throws -> GrantRecord {
        switch state.verify(token, from: source, at: now) {
        case .accepted(let record):
            return record
        case .reused(let change):
            try await endAndCommit(change)
            throw AccessError.refused
        case .refused(let why):
            throw try reject(token, because: why, from: source, at: now)
        }
    }
}

/// The target of a revocation.
package enum RevocationTarget: Hashable, Sendable {
    /// A grant with its descendants, or an invite.
    case one(String)
    /// Everything that the caller may end. For an owner: every grant and every open invite.
    case all
}
