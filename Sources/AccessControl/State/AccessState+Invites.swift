import Crypto
import FoundationEssentials
import Model

/// Inviting, and redeeming invites.
extension AccessState {
    /// Wrong secrets after which an invite is burnt.
    static let wrongLimit = 5
    /// For how many seconds the same client gets the same grant again.
    static let repeatWindow = 60

    enum Redeeming {
        case granted(ChangeSet, GrantRecord, Token)
        /// The reply to an earlier redemption, once more; nothing changes.
        case again(GrantRecord, Token)
        /// Why, for the audit log, and what the attempt itself changes.
        case refused(String, ChangeSet?)
    }

    /// Makes an invite of a token; the caller is an owner, or whoever holds the grant that it names.
    func invite(
        _ terms: InviteTerms,
        as token: Token,
        by caller: AuditActor,
        from origin: RequestSource,
        at now: MonotonicTime
    ) throws(AccessError) -> ChangeSet {
        try terms.check()
        var expires = now + terms.lifetime
        var life = terms.grantLifetime ?? InviteTerms.defaultGrantLifetime
        var parent: String?
        if case .grant(let id) = caller {
            let own = try inviter(id, for: terms.permissions, at: now)
            let left = Int((own.expires - now).components.seconds)
            guard (terms.grantLifetime ?? 1) <= left, terms.lifetime <= left else {
                throw .tooWide("what a grant gives cannot outlive the grant itself")
            }
            life = min(life, max(1, left))
            expires = min(expires, own.expires)
            parent = id
        }
        var change = ChangeSet()
        change.forgotten = try room(forInviteUnder: parent)
        change.invites = [
            InviteRecord(
                id: token.id,
                digest: Data(token.digest),
                permissions: terms.permissions,
                uses: terms.uses,
                createdBy: caller,
                parent: parent,
                created: now,
                expires: expires,
                life: life,
                idle: terms.grantIdle,
                binding: terms.binding
            )
        ]
        var event = AuditEvent(.invited, by: caller, from: origin)
        event.invite = token.id
        change.events = [event]
        return change
    }

    /// The grant under which somebody wants to give something away.
    func inviter(
        _ id: String,
        for permissions: Permissions,
        at now: MonotonicTime
    ) throws(AccessError) -> GrantRecord {
        guard let grant = grants[id], grant.end(at: now) == nil else { throw .refused }
        guard grant.permissions.allow(.inviteCreate) else {
            throw .tooWide("the grant does not have the scope \(Scope.inviteCreate.rawValue)")
        }
        guard permissions.isSubset(of: grant.permissions) else {
            throw .tooWide("a grant gives no more than it allows itself, scopes and endpoints alike")
        }
        return grant
    }

    /// - Parameters:
    ///   - token: As it was presented.
    ///   - request: Checked already.
    ///   - origin: The door that it came through.
    ///   - now: The effective time.
    ///   - keys: Derive the grant's secret.
    /// - Returns: What to do.
    /// - Throws: `AccessError.tooWide` when the secret is right and more is asked for than the invite gives; it stays
    ///   unspent then.
    func redeem(
        _ token: Token,
        for request: Redemption,
        from origin: RequestSource,
        at now: MonotonicTime,
        keys: Keyring
    ) throws(AccessError) -> Redeeming {
        // The same work whether there is such an invite or not.
        let record = invites[token.id]
        let isRight = token.digest == record?.digest ?? Self.nobody
        guard token.kind == .invite, let record else { return .refused("unknown invite", nil) }
        guard isRight else { return wrong(record, from: origin) }
        let client = Data(SHA256.hash(data: request.client))
        if let grant = repeated(record, client, at: now) {
            let token = keys.grant(grant.id, from: token, to: client)
            guard token.digest == grant.digest, grant.binding.isMet(by: origin) else {
                return .refused("redeemed already", nil)
            }
            return .again(grant, token)
        }
        if let end = record.end { return .refused("\(end.rawValue) invite", nil) }
        guard now < record.expires else { return .refused("expired invite", nil) }
        let parent = record.parent.flatMap { grants[$0] }
        guard record.parent == nil || parent.map({ $0.end(at: now) == nil }) ?? false else {
            return .refused("its inviter's grant ended", nil)
        }
        let binding = record.binding ?? request.binding
        guard binding.isMet(by: origin) else { return .refused("meant for somebody else", nil) }
        let permissions = request.permissions ?? record.permissions
        guard permissions.isSubset(of: record.permissions), !permissions.scopes.isEmpty else {
            throw .tooWide("the invite does not give that; ask for less, it is still good")
        }
        if permissions.allow(.admin) {
            guard case .user = binding else {
                throw .tooWide(
                    "\(Scope.admin.rawValue) is for a user of this machine, on the unix socket; the invite is still good"
                )
            }
        }
        let forgotten = try room(forGrantUnder: record.parent)
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
            created: now,
            expires: min(now + record.life, parent?.expires ?? now + record.life),
            lastUsed: now,
            idle: record.idle
        )
        return .granted(spend(record, for: grant, from: origin, forgetting: forgotten), grant, grantToken)
    }

    /// Stands for the digest of a token that nobody has.
    static let nobody = Data(repeating: 0, count: 32)

    private func spend(
        _ record: InviteRecord,
        for grant: GrantRecord,
        from origin: RequestSource,
        forgetting: [String]
    ) -> ChangeSet {
        var spent = record
        spent.used += 1
        if spent.used == spent.uses { spent.end = .spent }
        var event = AuditEvent(.redeemed, by: .stranger, from: origin)
        event.invite = record.id
        event.grant = grant.id
        event.used = spent.used
        var change = ChangeSet()
        change.spent = spent
        change.forgotten = forgetting
        change.grants = [grant]
        change.events = [event]
        return change
    }

    private func repeated(_ record: InviteRecord, _ client: Data, at now: MonotonicTime) -> GrantRecord? {
        given(by: record.id).first {
            $0.client == client && now < $0.created + Self.repeatWindow && $0.end(at: now) == nil
        }
    }

    private func wrong(_ record: InviteRecord, from origin: RequestSource) -> Redeeming {
        guard record.end == nil else { return .refused("wrong secret", nil) }
        var record = record
        record.wrong += 1
        var event = AuditEvent(.refused, by: .stranger, from: origin)
        event.detail = "wrong secret \(record.wrong) of \(Self.wrongLimit)"
        event.invite = record.id
        if record.wrong >= Self.wrongLimit {
            record.end = .burnt
            event = AuditEvent(.burnt, by: .broker, from: origin)
            event.invite = record.id
            event.isAlert = true
        }
        var change = ChangeSet()
        change.invites = [record]
        change.events = [event]
        return .refused("wrong secret", change)
    }
}
