import Crypto
import FoundationEssentials
package import Model
import Synchronization

extension AccessStore {
    /// Every grant, those that ended in the last day included, the newest first.
    package var grants: [Grant] {
        let now = now()
        return ledger.grants.values.sorted { $0.created > $1.created }.map { $0.grant(at: now) }
    }

    /// Whom a token lets in, and notes that it was used. A token that is right does not wait for the store.
    ///
    /// - Throws: `AccessError.refused`, the same for every reason, or `.tooManyAttempts`.
    package nonisolated func authenticate(_ token: Token, from origin: RequestSource) async throws -> Grant {
        let reading = reading()
        let grant = books.withLock { books -> Grant? in
            let now = books.clock.advance(to: reading)
            guard case .accepted(let record) = books.ledger.judge(token, from: origin, at: now) else { return nil }
            books.touch(record.id, at: now)
            return record.grant(at: now)
        }
        if let grant { return grant }
        return try await admit(token, from: origin)
    }

    private func admit(_ token: Token, from origin: RequestSource) async throws -> Grant {
        let now = now()
        let record = try await accept(token, from: origin, at: now)
        books.withLock { $0.touch(record.id, at: now) }
        return record.grant(at: now)
    }

    /// Whether a grant still counts; for what goes on for long without showing its token again.
    package nonisolated func isLive(_ grant: String) -> Bool {
        let reading = reading()
        return books.withLock { books in
            let now = books.clock.advance(to: reading)
            return books.isLive(grant, at: now)
        }
    }

    /// Replaces a grant's secret, for whoever shows the one that it has now.
    ///
    /// The grace says for how many seconds the old secret goes on counting, 0 to 60. Who uses it later ends the grant and
    /// everything under it.
    package func rotate(_ token: Token, grace: Int = 0, from origin: RequestSource) async throws -> (Grant, Token) {
        let now = now()
        let record = try await accept(token, from: origin, at: now)
        guard token.digest == record.digest else { throw try refuse(token, "replaced secret", from: origin, at: now) }
        let fresh = Token(random: .grant).renamed(record.id)
        let change = try ledger.rotate(record, to: fresh, grace: grace, from: origin, at: now)
        try commit(change)
        return (change.grants[0].grant(at: now), fresh)
    }

    /// Gives a part of a grant to somebody else, as a grant under it; the door has made sure that the caller holds it.
    ///
    /// Of the terms, those of an invite itself do not matter.
    package func delegate(
        under parent: String,
        to name: SanitizedText,
        _ terms: InviteTerms,
        from origin: RequestSource
    ) throws -> (Grant, Token) {
        let now = now()
        var token = Token(random: .grant)
        while ledger.grants[token.id] != nil { token = Token(random: .grant) }
        let change = try ledger.child(of: parent, as: token, name: name, terms: terms, from: origin, at: now)
        try commit(change)
        return (change.grants[0].grant(at: now), token)
    }

    /// Ends a grant with everything under it, an invite, or all of them. When it returns, it is on the disk and every use
    /// of those grants has been cut.
    ///
    /// - Returns: The ids that ended.
    /// - Throws: `AccessError.notFound`; `.notSaved`, after which they are ended and cut until the broker stops.
    @discardableResult
    package func revoke(_ what: RevocationTarget, by caller: AuditActor, from origin: RequestSource) async throws
        -> [String]
    {
        let change = try ledger.revoke(what, by: caller, from: origin, at: now())
        try await close(by: change)
        return change.events.flatMap { $0.ended ?? [] }
    }

    /// Registers something that lives under a grant.
    ///
    /// - Parameters:
    ///   - grant: The grant's id.
    ///   - cut: Ends it, and returns when not one more byte passes. Called at most once, perhaps before this returns, and
    ///     in the task of whoever ends the grant: that one may have been cancelled, which must not shorten it.
    /// - Returns: What `close` takes, when it ends by itself.
    /// - Throws: `AccessError.refused` when the grant does not count any more.
    package nonisolated func open(under grant: String, cut: @escaping @Sendable () async -> Void) throws -> GrantSession
    {
        try open(under: grant, signal: {}, finish: cut)
    }

    package nonisolated func close(_ use: GrantSession) { books.withLock { $0.uses.close(use) } }

    /// Runs something under a grant: it is cancelled when the grant ends, and whoever ends the grant waits until it is over.
    ///
    /// - Throws: What the body throws, or `AccessError.refused` when the grant ended.
    package nonisolated func withUse<Value: Sendable>(
        of grant: String,
        _ body: @escaping @Sendable () async throws -> Value
    ) async throws -> Value {
        let (end, ending) = AsyncStream.makeStream(of: Never.self)
        let over = Ending()
        defer { over.finish() }
        let use = try open(under: grant, signal: { ending.finish() }, finish: { await over.wait() })
        let result: Result<Value, any Error> = await GrantSession.$current.withValue(use) {
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
        close(use)
        return try result.get()
    }

    private static func result<Value: Sendable>(
        of body: @Sendable () async throws -> Value
    ) async -> Result<Value, any Error> {
        do { return .success(try await body()) } catch { return .failure(error) }
    }

    private nonisolated func open(
        under grant: String,
        signal: @escaping @Sendable () -> Void,
        finish: @escaping @Sendable () async -> Void
    ) throws -> GrantSession {
        let reading = reading()
        let (use, isWatched) = try books.withLock { books in
            let now = books.clock.advance(to: reading)
            guard let record = books.ledger.grants[grant], record.end(at: now) == nil else {
                throw AccessError.refused
            }
            let isWatched = books.uses.isWatched
            return (books.uses.open(of: grant, signal: signal, finish: finish), isWatched)
        }
        if !isWatched { wake() }
        return use
    }

    private func accept(_ token: Token, from origin: RequestSource, at now: MonotonicTime) async throws -> GrantRecord {
        switch ledger.judge(token, from: origin, at: now) {
        case .accepted(let record):
            return record
        case .reused(let change):
            try await close(by: change)
            throw AccessError.refused
        case .refused(let why):
            throw try refuse(token, why, from: origin, at: now)
        }
    }
}

/// What is to be ended.
package enum RevocationTarget: Hashable, Sendable {
    /// A grant with everything under it, or an invite.
    case one(String)
    /// Everything that the caller may end; for an owner every grant and every open invite.
    case all
}
