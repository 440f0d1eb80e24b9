import Crypto
import FoundationEssentials
import Model

/// Knowing grants again, replacing their secrets, giving parts of them away, and ending them.
extension AccessState {
    enum Verdict {
        case accepted(GrantRecord)
        /// A secret that was replaced; everything that hangs on the grant ends.
        case reused(ChangeSet)
        /// Why, for the audit log.
        case refused(String)
    }

    /// Whom a token lets in; the same work for every token that has the right form.
    func judge(_ token: Token, from origin: RequestSource, at now: MonotonicTime) -> Verdict {
        let record = grants[token.id]
        let digest = token.digest
        let isCurrent = digest == record?.digest ?? Self.nobody
        guard token.kind == .grant, let record else { return .refused("unknown grant") }
        // Newest last: the last match is the one that counts.
        let retired = record.retired.last { digest == $0.digest }
        guard isCurrent || retired != nil else { return .refused("wrong secret") }
        if let end = record.end(at: now) { return .refused("\(end.rawValue) grant") }
        if !isCurrent, let retired, now >= retired.until { return .reused(reuse(of: record, from: origin, at: now)) }
        guard record.binding.isMet(by: origin) else { return .refused("bound to somebody else") }
        return .accepted(record)
    }

    /// Gives a grant a new secret; the old one goes on counting for a grace of 0 to 60 seconds.
    func rotate(
        _ record: GrantRecord,
        to token: Token,
        grace: Int,
        from origin: RequestSource,
        at now: MonotonicTime
    ) throws(AccessError) -> ChangeSet {
        guard (0...60).contains(grace) else { throw .outOfRange("an old secret goes on counting for 0 to 60 seconds") }
        var record = record
        record.retired.append(GrantRecord.RotatedSecret(digest: record.digest, until: now + grace))
        record.retired = record.retired.suffix(GrantRecord.retiredLimit)
        record.digest = Data(token.digest)
        record.lastUsed = now
        var event = AuditEvent(.rotated, by: .grant(record.id), from: origin)
        event.grant = record.id
        var change = ChangeSet()
        change.grants = [record]
        change.events = [event]
        return change
    }

    /// A grant under another one, for somebody whom its holder trusts.
    func child(
        of parent: String,
        as token: Token,
        name: SanitizedText,
        terms: InviteTerms,
        from origin: RequestSource,
        at now: MonotonicTime
    ) throws(AccessError) -> ChangeSet {
        try terms.check()
        guard !terms.permissions.allow(.admin) else { throw .tooWide("\(Scope.admin.rawValue) is not given on") }
        let own = try inviter(parent, for: terms.permissions, at: now)
        let forgotten = try room(forGrantUnder: parent)
        let expires = terms.grantLifetime.map { now + $0 } ?? min(now + InviteTerms.defaultGrantLifetime, own.expires)
        guard expires <= own.expires else { throw .tooWide("what a grant gives cannot outlive the grant itself") }
        let grant = GrantRecord(
            id: token.id,
            digest: Data(token.digest),
            name: name,
            permissions: terms.permissions,
            binding: terms.binding ?? .bearer,
            parent: parent,
            invite: nil,
            client: Data(),
            created: now,
            expires: expires,
            lastUsed: now,
            idle: terms.grantIdle
        )
        var event = AuditEvent(.redeemed, by: .grant(parent), from: origin)
        event.grant = grant.id
        var change = ChangeSet()
        change.grants = [grant]
        change.forgotten = forgotten
        change.events = [event]
        return change
    }

    /// Ends grants with everything under them, and invites.
    ///
    /// - Throws: `AccessError.notFound`, also for what is not the caller's to end.
    func revoke(
        _ what: RevocationTarget,
        by caller: AuditActor,
        from origin: RequestSource,
        at now: MonotonicTime
    ) throws(AccessError) -> ChangeSet {
        let own: Set<String>? = if case .grant(let id) = caller { family(of: [id]) } else { nil }
        var change = ChangeSet()
        var roots: Set<String> = []
        switch what {
        case .all:
            roots = own ?? Set(grants.keys)
            if own == nil { change.invites = invites.values.filter { $0.end == nil } }
        case .one(let id):
            let isGrant = grants[id] != nil && own?.contains(id) ?? true
            let isInvite = invites[id].map { invite in
                own.map { own in invite.parent.map(own.contains) ?? false } ?? true
            }
            guard isGrant || isInvite ?? false else {
                throw .notFound("no grant or invite has that id; patchbay grants and patchbay invites show them")
            }
            if isGrant { roots = [id] }
            if isInvite ?? false, let invite = invites[id], invite.end == nil { change.invites = [invite] }
        }
        change.invites = change.invites.map {
            var invite = $0
            invite.end = .revoked
            return invite
        }
        let closed = Set(change.invites.map(\.id))
        let family = family(of: roots)
        change.grants = family.sorted().compactMap { end($0, as: .revoked, at: now) }
        change.invites += openInvites(under: family).filter { !closed.contains($0.id) }
        var event = AuditEvent(.revoked, by: caller, from: origin)
        event.ended = (change.invites.map(\.id) + change.endedGrants).sorted()
        change.events = [event]
        return change
    }

    private func reuse(of record: GrantRecord, from origin: RequestSource, at now: MonotonicTime) -> ChangeSet {
        let family = family(of: [record.id])
        var change = ChangeSet()
        change.grants = family.sorted().compactMap { end($0, as: .reused, at: now) }
        change.invites = openInvites(under: family)
        var event = AuditEvent(.reused, by: .stranger, from: origin)
        event.grant = record.id
        event.ended = (change.invites.map(\.id) + change.endedGrants).sorted()
        event.detail = "a secret that was replaced is still in use: somebody has a copy"
        event.isAlert = true
        change.events = [event]
        return change
    }
}
