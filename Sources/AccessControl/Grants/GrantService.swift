package import Model
import Synchronization

/// Grants: the list, authentication and revocation. `InMemoryAccessState` has their sessions.
package struct GrantService: Sendable {
    let store: AccessStore

    /// Every grant, newest first, including those that ended in the last day.
    package var list: [Grant] {
        get async {
            let now = store.now()
            return await store.state.grants.values.sorted { $0.createdAt > $1.createdAt }.map { $0.grant(at: now) }
        }
    }

    /// Returns the grant that a token belongs to, and records its use. A valid token does not wait for the store's
    /// thread.
    ///
    /// - Parameters:
    ///   - token: The token.
    ///   - source: The connection.
    ///   - user: The user of a TCP client, as the kernel reports the user.
    /// - Returns: The grant.
    /// - Throws: `AccessError.refused`, the same for every reason, or `.tooManyAttempts`.
    package func authenticate(_ token: Token, from source: RequestSource, user: UInt32? = nil) async throws -> Grant {
        let (result, now) = store.live.verify(token, from: source, user: user)
        switch result {
        case .accepted(let record): return record.grant(at: now)
        case .refused(let why): throw try await store.reject(token, because: why, from: source, at: now)
        case .outdated: throw AccessError.refused
        }
    }

    /// Returns the grant that is bound to a client's key, and records its use. The client has proved to hold the key.
    ///
    /// - Returns: Nil if there is no valid grant for the key, or if the client is not at the remote listener.
    package func authenticate(key: KeyPin, from source: RequestSource) -> Grant? {
        store.live.grant(boundTo: key, from: source)
    }

    /// Returns a grant that is valid now. Records no use.
    package func valid(_ id: String) -> Grant? { store.live.grant(id) }

    /// Ends one grant with its descendants, one invite, or all of them. On return the change is saved and every session
    /// of those grants is closed.
    ///
    /// - Returns: The IDs that ended.
    /// - Throws: `AccessError.noSuchGrant`; `.notSaved`, after which they stay ended until the broker stops.
    @discardableResult
    package func revoke(_ what: RevocationTarget, by caller: AuditActor, from source: RequestSource) async throws
        -> [String]
    {
        try await store.transaction { store in
            let change = try store.state.revoke(what, by: caller, from: source, at: store.now())
            try await store.endAndCommit(change)
            return change.events.flatMap { $0.ended ?? [] }
        }
    }

    /// Revokes the invite or grant of a token that leaked, because a client sent the token in a URL or a cookie.
    ///
    /// Requires the whole token; its ID alone revokes nothing.
    package func revokeLeaked(_ token: Token, from source: RequestSource, user: UInt32? = nil) async throws {
        try await store.transaction { store in
            let now = store.now()
            guard store.state.isValid(token, from: source, user: user, at: now) else {
                _ = try store.reject(token, because: "a token in a URL or a cookie", from: source, at: now)
                return
            }
            var change = try store.state.revoke(.one(token.id), by: .broker, from: source, at: now)
            for index in change.events.indices {
                change.events[index].detail = "it was sent in a URL or a cookie, where others can read it"
                change.events[index].alert = true
            }
            try await store.endAndCommit(change)
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
