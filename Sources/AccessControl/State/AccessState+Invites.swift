import Crypto
import FoundationEssentials
import Model

/// Transitions of invites: creation and redemption.
extension AccessState {
    /// Number of wrong secrets after which an invite is burnt.
    static let wrongLimit = 5
    /// Seconds during which the same client gets the same grant again.
    static let repeatWindow = 60

    /// The result of `redeem`.
    enum RedemptionOutcome {
        case granted(ChangeSet, GrantRecord, Token)
        /// A repeated redemption by the same client; nothing changes.
        case again(GrantRecord, Token)
        /// The reason, for the audit log, and the change that the attempt causes.
        case refused(String, ChangeSet?)
    }

    /// Creates an invite. The caller is an owner or the holder of the named grant.
    func invite(
        _ terms: InviteTerms,
        as token: Token,
        by caller: AuditActor,
        from source: RequestSource,
        at now: MonotonicTime
    ) throws(AccessError) -> ChangeSet {
        try terms.check()
        var expires = now + terms.lifetime
        var life = terms.grantLifetime ?? InviteTerms.defaultGrantLifetime
        var parent: String?
        if case .grant(let id) = caller {
            let own = try invitingGrant(id, for: terms.permissions, at: now)
            let left = Int((own.expiresAt - now).components.seconds)
            guard (terms.grantLifetime ?? 1) <= left, terms.lifetime <= left else {
                throw .tooWide("a child grant or an invite cannot outlive its grant")
            }
            life = min(life, max(1, left))
            expires = min(expires, own.expiresAt)
            parent = id
        }
        var change = ChangeSet()
        change.purged = try evictions(forInviteUnder: parent)
        change.invites = [
            InviteRecord(
                id: token.id,
                digest: Data(token.digest),
                permissions: terms.permissions,
                maxUses: terms.uses,
                createdBy: caller,
                parent: parent,
                createdAt: now,
                expiresAt: expires,
                grantLifetimeSeconds: life,
                grantIdleSeconds: terms.grantIdle,
                binding: terms.binding
            )
        ]
        var event = AuditEvent(.invited, by: caller, from: source)
        event.invite = token.id
        change.events = [event]
        return change
    }

    /// Returns the grant under which a caller wants to create an invite or a child grant.
    func invitingGrant(
        _ id: String,
        for permissions: Permissions,
        at now: MonotonicTime
    ) throws(AccessError) -> GrantRecord {
        guard let grant = grants[id], grant.endReason(at: now) == nil else { throw .refused }
        guard grant.permissions.allow(.inviteCreate) else {
            throw .tooWide("the grant does not have the scope \(Scope.inviteCreate.rawValue)")
        }
        guard permissions.isSubset(of: grant.permissions) else {
            throw .tooWide("a grant cannot give scopes or endpoints that it does not have")
        }
        return grant
    }

    /// Redeems an invite for a grant.
    ///
    /// - Parameters:
    ///   - token: The presented token.
    ///   - request: A validated redemption.
    ///   - source: The connection that the token came over.
    ///   - now: The logical time.
    ///   - keys: Derive the grant's secret.
    /// - Returns: The outcome, with the change to commit.
    /// - Throws: `AccessError.tooWide` when the secret is right and the client asks for more than the invite allows.
    ///   The invite stays unspent.
    func redeem(
        _ token: Token,
        for request: Redemption,
        from source: RequestSource,
        at now: MonotonicTime,
        keys: Keyring
    ) throws(AccessError) -> RedemptionOutcome {
        // Does the same work whether the invite exists or not.
        let record = invites[token.id]
        let isRight = token.digest == record?.digest ?? Self.unknownDigest
        guard token.kind == .invite, let record else { return .refused("unknown invite", nil) }
        guard isRight else { return recordWrongSecret(record, from: source) }
        let client = Data(SHA256.hash(data: request.client))
        if let grant = previousGrant(from: record, to: client, at: now) {
            let token = keys.grant(grant.id, from: token, to: client)
            guard token.digest == grant.digest, grant.binding.isMet(by: source) else {
                return .refused("redeemed already", nil)
            }
            return .again(grant, token)
        }
        if let end = record.endReason { return .refused("\(end.rawValue) invite", nil) }
        guard now < record.expiresAt else { return .refused("expired invite", nil) }
        let parent = record.parent.flatMap { grants[$0] }
        guard record.parent == nil || parent.map({ $0.endReason(at: now) == nil }) ?? false else {
            return .refused("its inviter's grant ended", nil)
        }
        let binding = record.binding ?? request.binding
        guard binding.isMet(by: source) else { return .refused("meant for another user or key", nil) }
        let permissions = request.permissions ?? record.permissions
        guard permissions.isSubset(of: record.permissions), !permissions.scopes.isEmpty else {
            throw .tooWide("the invite does not allow that; request less, the invite is still valid")
        }
        if permissions.allow(.admin) {
            guard case .user = binding else {
                throw .tooWide(
                    "\(Scope.admin.rawValue) requires a user of this machine on the unix socket; the invite is still valid"
                )
            }
        }
        let purged = try evictions(forGrantUnder: record.parent)
        let grantToken = keys.grant(Token(random: .grant).id, from: token, to: client)
        let grant = GrantRecord(
            id: grantToken.id,
            digest: Data(grantToken.digest),
            name: request.name,
            permissions: permissions,
            binding: binding,
            parent: record.parent,
            invite: record.id,
            client: client,
            createdAt: now,
            expiresAt: min(now + record.grantLifetimeSeconds, parent?.expiresAt ?? now + record.grantLifetimeSeconds),
            lastUsedAt: now,
            idleSeconds: record.grantIdleSeconds
        )
        return .granted(spend(record, for: grant, from: source, purging: purged), grant, grantToken)
    }

    /// A digest that no token has. Compared with the token's digest when the ID is unknown.
    static let unknownDigest = Data(repeating: 0, count: 32)

    private func spend(
        _ record: InviteRecord,
        for grant: GrantRecord,
        from source: RequestSource,
        purging ids: [String]
    ) -> ChangeSet {
        var spent = record
        spent.useCount += 1
        if spent.useCount == spent.maxUses { spent.endReason = .spent }
        var event = AuditEvent(.redeemed, by: .anonymous, from: source)
        event.invite = record.id
        event.grant = grant.id
        event.useCount = spent.useCount
        var change = ChangeSet()
        change.spent = spent
        change.purged = ids
        change.grants = [grant]
        change.events = [event]
        return change
    }

    private func previousGrant(from record: InviteRecord, to client: Data, at now: MonotonicTime) -> GrantRecord? {
        grantRecords(fromInvite: record.id).first {
            $0.client == client && now < $0.createdAt + Self.repeatWindow && $0.endReason(at: now) == nil
        }
    }

    private func recordWrongSecret(_ record: InviteRecord, from source: RequestSource) -> RedemptionOutcome {
        guard record.endReason == nil else { return .refused("wrong secret", nil) }
        var record = record
        record.failedAttempts += 1
        var event = AuditEvent(.refused, by: .anonymous, from: source)
        event.detail = "wrong secret \(record.failedAttempts) of \(Self.wrongLimit)"
        event.invite = record.id
        if record.failedAttempts >= Self.wrongLimit {
            record.endReason = .burnt
            event = AuditEvent(.burnt, by: .broker, from: source)
            event.invite = record.id
            event.alert = true
        }
        var change = ChangeSet()
        change.invites = [record]
        change.events = [event]
        return .refused("wrong secret", change)
    }
}
