import Crypto
package import FoundationEssentials
package import Model

/// The sign-in of owners in a browser: one-time codes, and the sessions for which they are exchanged.
///
/// A session is a grant that is bound to the user. It counts only on connections that the kernel attributes to this user.
package struct DashboardService: Sendable {
    /// Lifetime of a code in seconds.
    package static let codeLifetime = DashboardCodes.lifetime
    /// Lifetime and idle timeout of a session in seconds (12 hours).
    package static let sessionLifetime = 43_200

    let store: AccessStore

    /// Creates a one-time code of 131 bits. The API has verified that the user is an owner, by the kernel's word.
    ///
    /// - Parameters:
    ///   - user: The user whose browser may use the code.
    ///   - caller: The process that asks.
    ///   - source: The connection.
    /// - Returns: The code, and the time at which it expires.
    /// - Throws: `AccessError.notSaved`.
    package func createCode(for user: UInt32, by caller: AuditActor, from source: RequestSource) async throws
        -> (code: String, expiresAt: Date)
    {
        try await store.transaction { store in
            let code = Base62.random128Bits()
            try store.commit(ChangeSet([AuditEvent(.dashboardCode, by: caller, from: source)]))
            return (code, store.dashboardCodes.add(code, for: user, at: store.now()).date)
        }
    }

    /// Exchanges a code for a session. The code is used up only if this succeeds.
    ///
    /// - Parameters:
    ///   - code: The code of `createCode`.
    ///   - owner: The user of the client's connection, if the kernel reports the user and the user is an owner.
    ///   - name: The name of the session in lists.
    ///   - source: The connection.
    /// - Returns: The session with its token.
    /// - Throws: `AccessError.refused`, the same for every reason; `.tooManyAttempts`, `.limit`, `.notSaved`.
    package func signIn(with code: String, owner: UInt32?, name: SanitizedText, from source: RequestSource)
        async throws -> (Grant, Token)
    {
        try await store.transaction { store in
            let now = store.now()
            guard case .accepted = store.dashboardCodes.check(code, by: owner, at: now), let owner else {
                throw try store.reject(code, by: owner, from: source, at: now)
            }
            var token = Token(random: .grant)
            while store.state.grants[token.id] != nil { token = Token(random: .grant) }
            let change = try store.state.dashboardSession(of: owner, as: token, name: name, from: source, at: now)
            try store.commit(change)
            store.dashboardCodes.remove(code)
            return (change.grants[0].grant(at: now), token)
        }
    }
}

extension AccessStore {
    /// Counts a rejected code like a wrong token.
    ///
    /// - Returns: The error to throw.
    fileprivate func reject(_ code: String, by owner: UInt32?, from source: RequestSource, at now: MonotonicTime) throws
        -> AccessError
    {
        guard case .refused(let reason) = dashboardCodes.check(code, by: owner, at: now) else { return .refused }
        if let pause = attemptLimiter.recordFailure(from: source, at: now) {
            return .tooManyAttempts(retryAfter: pause)
        }
        try commit(ChangeSet([AuditEvent(.refused, by: .anonymous, from: source, detail: reason)]))
        return .refused
    }
}

extension AccessState {
    /// Returns the change that creates the session of an owner.
    fileprivate func dashboardSession(
        of user: UInt32,
        as token: Token,
        name: SanitizedText,
        from source: RequestSource,
        at now: MonotonicTime
    ) throws(AccessError) -> ChangeSet {
        let actor = AuditActor.dashboard(uid: user, grant: token.id)
        var change = ChangeSet([AuditEvent(.signedIn, by: actor, from: source, grant: token.id)])
        change.purged = try evictions(forGrantUnder: nil)
        change.grants = [
            GrantRecord(
                id: token.id,
                digest: Data(token.digest),
                name: name,
                permissions: Permissions(Set(Scope.allCases), on: .all),
                binding: .dashboard(user),
                parent: nil,
                invite: nil,
                client: Data(),
                createdAt: now,
                expiresAt: now + DashboardService.sessionLifetime,
                lastUsedAt: now,
                idleSeconds: DashboardService.sessionLifetime
            )
        ]
        return change
    }
}
