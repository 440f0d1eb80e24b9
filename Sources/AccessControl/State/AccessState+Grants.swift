import Crypto
import FoundationEssentials
import Model

/// Transitions of grants: token verification, rotation, delegation and revocation.
extension AccessState {
    /// The result of `verify`.
    enum TokenVerification {
        case accepted(GrantRecord)
        /// The token has a secret that was rotated out. The change ends the grant and its descendants.
        case reused(ChangeSet)
        /// The reason, for the audit log.
        case refused(String)
    }

    /// Returns the grant that a token belongs to. Does the same work for every well-formed token.
    func verify(_ token: Token, from source: RequestSource, at now: MonotonicTime) -> TokenVerification {
        let record = grants[token.id]
        let digest = token.digest
        let isCurrent = digest == record?.digest ?? Self.unknownDigest
        guard token.kind == .grant, let record else { return .refused("unknown grant") }
        // Sorted from oldest to newest; the last match applies.
        let retired = record.retired.last { digest == $0.digest }
        guard isCurrent || retired != nil else { return .refused("wrong secret") }
        if let end = record.endReason(at: now) { return .refused("\(end.rawValue) grant") }
        if !isCurrent, let retired, now >= retired.expiresAt {
            return .reused(reuse(of: record, from: source, at: now))
        }
        guard record.binding.isMet(by: source) else { return .refused("bound to another user or key") }
        return .accepted(record)
    }

    /// Replaces a grant's secret. The old secret stays valid for a grace period of 0 to 60 seconds.
    func rotate(
        _ record: GrantRecord,
        to token: Token,
        grace: Int,
        from source: RequestSource,
        at now: MonotonicTime
    ) throws(AccessError) -> ChangeSet {
        guard (0...60).contains(grace) else {
            throw .outOfRange("the grace period of an old secret is 0 to 60 seconds")
        }
        var record = record
        record.retired.append(GrantRecord.RotatedSecret(digest: record.digest, expiresAt: now + grace))
        record.retired = record.retired.suffix(GrantRecord.retiredLimit)
        record.digest = Data(token.digest)
        record.lastUsedAt = now
        var event = AuditEvent(.rotated, by: .grant(record.id), from: source)
        event.grant = record.id
        var change = ChangeSet()
        change.grants = [record]
        change.events = [event]
        return change
    }

    /// Creates a child grant, which its parent's holder passes on to another client.
    func child(
        of parent: String,
        as token: Token,
        name: SanitizedText,
        terms: InviteTerms,
        from source: RequestSource,
        at now: MonotonicTime
    ) throws(AccessError) -> ChangeSet {
        try terms.check()
        guard !terms.permissions.allow(.admin) else { throw .tooWide("\(Scope.admin.rawValue) cannot be delegated") }
        let own = try invitingGrant(parent, for: terms.permissions, at: now)
        let purged = try evictions(forGrantUnder: parent)
        let expires = terms.grantLifetime.map { now + $0 } ?? min(now + InviteTerms.defaultGrantLifetime, own.expiresAt)
        guard expires <= own.expiresAt else { throw .tooWide("a child grant or an invite cannot outlive its grant") }
        let grant = GrantRecord(
            id: token.id,
            digest: Data(token.digest),
            name: name,
            permissions: terms.permissions,
            binding: terms.binding ?? .bearer,
            parent: parent,
            invite: nil,
            client: Data(),
            createdAt: now,
            expiresAt: expires,
            lastUsedAt: now,
            idleSeconds: terms.grantIdle
        )
        var event = AuditEvent(.redeemed, by: .grant(parent), from: source)
        event.grant = grant.id
        var change = ChangeSet()
        change.grants = [grant]
        change.purged = purged
        change.events = [event]
        return change
    }

    /// Ends grants with their descendants, and invites.
    ///
    /// - Throws: `AccessError.notFound`, also for a grant or invite that the caller may not end.
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
            guard isGrant || isInvite ?? false else {
                throw .notFound("no grant or invite has that ID; patchbay grants and patchbay invites list them")
            }
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
        var event = AuditEvent(.revoked, by: caller, from: source)
        event.ended = (change.invites.map(\.id) + change.endedGrants).sorted()
        change.events = [event]
        return change
    }

    private func reuse(of record: GrantRecord, from source: RequestSource, at now: MonotonicTime) -> ChangeSet {
        let descendants = descendants(of: [record.id])
        var change = ChangeSet()
        change.grants = descendants.sorted().compactMap { end($0, as: .reused, at: now) }
        change.invites = openInvites(under: descendants)
        var event = AuditEvent(.reused, by: .anonymous, from: source)
        event.grant = record.id
        event.ended = (change.invites.map(\.id) + change.endedGrants).sorted()
        event.detail = "a replaced secret was used again: it has been copied"
        event.alert = true
        change.events = [event]
        return change
    }
}
