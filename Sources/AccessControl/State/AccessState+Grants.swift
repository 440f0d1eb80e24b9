import Crypto
import FoundationEssentials
import Model

/// Transitions of grants: token verification and revocation.
extension AccessState {
    /// The result of `verify`.
    enum TokenVerification {
        case accepted(GrantRecord)
        /// The reason, for the audit log.
        case refused(String)
        /// The access token of OAuth was right, and its hour is over. That is no guess.
        case outdated
    }

    /// A digest that no token has. Compared with the token's digest when the ID is unknown.
    static let unknownDigest = Data(repeating: 0, count: 32)

    /// Returns the grant that a token belongs to. Does the same work for every well-formed token.
    func verify(_ token: Token, from source: RequestSource, user: UInt32? = nil, at now: MonotonicTime)
        -> TokenVerification
    {
        let record = grants[token.id]
        let isRight = token.digest == record?.digest ?? Self.unknownDigest
        guard token.kind == .grant, let record else { return .refused("unknown grant") }
        guard isRight else { return .refused("wrong secret") }
        if let end = record.endReason(at: now) { return .refused("\(end.rawValue) grant") }
        guard record.isUsable(from: source, user: user) else {
            return .refused("bound to another user, key or listener")
        }
        if let oauth = record.oauth, now >= oauth.tokenExpiresAt { return .outdated }
        return .accepted(record)
    }

    /// Returns the newest valid grant that is bound to a key.
    func grantRecord(boundTo key: KeyPin, at now: MonotonicTime) -> GrantRecord? {
        grantRecords(boundTo: key).filter { $0.endReason(at: now) == nil }.max { $0.createdAt < $1.createdAt }
    }

    /// Returns whether a token is the current secret of an open invite or a valid grant.
    func isValid(_ token: Token, from source: RequestSource, user: UInt32? = nil, at now: MonotonicTime) -> Bool {
        switch token.kind {
        case .invite: return invites[token.id].map { token.digest == $0.digest && $0.endReason == nil } ?? false
        case .grant:
            if case .accepted = verify(token, from: source, user: user, at: now) { return true }
            return false
        case .refresh: return grants[token.id]?.oauth?.isOfFamily(token) ?? false
        }
    }

    /// Ends grants with their descendants, and invites.
    ///
    /// - Throws: `AccessError.noSuchGrant`, also for a grant or invite that the caller may not end.
    func revoke(
        _ what: RevocationTarget,
        by caller: AuditActor,
        from source: RequestSource,
        at now: MonotonicTime
    ) throws(AccessError) -> ChangeSet {
        let own: Set<String>? = if case .grant(let id) = caller { descendants(of: [id]) } else { nil }
        var change = ChangeSet()
        var roots: Set<String> = []
        switch what {
        case .all:
            roots = own ?? Set(grants.keys)
            if own == nil { change.invites = invites.values.filter { $0.endReason == nil } }
        case .one(let id):
            let isGrant = grants[id] != nil && own?.contains(id) ?? true
            let isInvite = invites[id].map { invite in
                own.map { own in invite.parent.map(own.contains) ?? false } ?? true
            }
            guard isGrant || isInvite ?? false else { throw .noSuchGrant(id) }
            if isGrant { roots = [id] }
            if isInvite ?? false, let invite = invites[id], invite.endReason == nil { change.invites = [invite] }
        }
        change.invites = change.invites.map {
            var invite = $0
            invite.endReason = .revoked
            return invite
        }
        let closed = Set(change.invites.map(\.id))
        let descendants = descendants(of: roots)
        change.grants = descendants.sorted().compactMap { end($0, as: .revoked, at: now) }
        change.invites += openInvites(under: descendants).filter { !closed.contains($0.id) }
        change.events = [AuditEvent(.revoked, by: caller, from: source, ended: change.endedIDs)]
        return change
    }
}
