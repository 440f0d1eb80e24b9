import Crypto
import FoundationEssentials
import Model
import SystemIO

/// Decides what a presented invite gives: a new grant, the same grant again, or nothing. Changes nothing itself.
struct InviteRedemptionEvaluator {
    /// Number of wrong secrets after which an invite is burnt.
    static let wrongLimit = 5
    /// Seconds during which the same client gets the same grant again.
    static let repeatWindow = 60

    enum Outcome {
        case granted(ChangeSet, GrantRecord, Token)
        /// A repeated redemption by the same client; nothing changes.
        case again(GrantRecord, Token)
        /// The reason, for the audit log, and the change that the attempt causes.
        case refused(String, ChangeSet?)
        /// The secret is right, and the invite has ended. The reason, for the audit log and the client.
        case ended(String)
    }

    let state: AccessState
    /// The keys that derive the grant's secret.
    let keys: DerivedKeys
    /// The connection that the token came over.
    let source: RequestSource
    /// The client, for the audit log.
    var caller = AuditActor.anonymous
    /// The TLS key that a remote client proved to hold; nil without a client certificate.
    let key: KeyPin?
    let now: MonotonicTime

    /// Redeems an invite for a grant.
    ///
    /// - Parameters:
    ///   - token: The presented token, parsed.
    ///   - spec: A validated redemption.
    /// - Returns: The outcome, with the change to commit.
    /// - Throws: `AccessError.tooWide` when the secret is right and the client asks for more than the invite allows;
    ///   `.keyRequired`; `.appRequired`. The invite stays unspent.
    func redeem(_ token: Token, for spec: RedemptionSpec) throws(AccessError) -> Outcome {
        // Does the same work whether the invite exists or not.
        let record = state.invites[token.id]
        let isRight = token.digest == record?.digest ?? AccessState.unknownDigest
        guard token.kind == .invite, let record else { return .refused("unknown invite", nil) }
        guard isRight else { return recordWrongSecret(record) }
        let client = client(of: spec)
        if let grant = previousGrant(from: record, to: client) {
            let token = keys.grant(grant.id, from: token, to: client)
            guard token.digest == grant.digest, isUsable(grant) else {
                return .ended(use(of: record))
            }
            return .again(grant, token)
        }
        // A client on another machine learns nothing about an invite for this machine.
        if isRemote, record.use ?? .local == .local { return .refused("not for remote clients", nil) }
        if let end = end(of: record) { return .ended(end) }
        guard isRemote || binding(of: record).isMet(by: source) else {
            return .refused("meant for another user", nil)
        }
        if isRemote, record.use == .remote, key == nil { throw .keyRequired }
        // Apps send only a token.
        if record.use == .device, key != nil { throw .appRequired }
        let permissions = try permissions(of: record, for: spec)
        let purged = try state.evictions(forGrantUnder: record.parent)
        let grantToken = keys.grant(Token(random: .grant).id, from: token, to: client)
        let expiresAt = now + record.grantLifetimeSeconds
        let grant = GrantRecord(
            id: grantToken.id,
            digest: Data(grantToken.digest),
            // Limits the length, because owners read the name in tables next to what they approve.
            name: SanitizedText(spec.name.text),
            permissions: permissions,
            binding: binding(of: record),
            parent: record.parent,
            invite: record.id,
            client: client,
            createdAt: now,
            expiresAt: min(expiresAt, parent(of: record)?.expiresAt ?? expiresAt),
            lastUsedAt: now,
            idleSeconds: record.grantIdleSeconds,
            remote: isRemote || record.use == .bearer || record.use == .device ? true : nil
        )
        return .granted(spend(record, for: grant, purging: purged), grant, grantToken)
    }

    /// Returns the sentence about the end of an invite; nil while it can be redeemed.
    private func end(of record: InviteRecord) -> String? {
        switch record.endReason ?? (now < record.expiresAt ? nil : .expired) {
        case .spent: return use(of: record)
        case .expired: return "the invite \(record.id) expired at \(LocalTime.text(of: record.expiresAt.date))"
        case .revoked: return "the invite \(record.id) was revoked"
        case .burnt: return "the invite \(record.id) was locked after \(record.failedAttempts) wrong secrets"
        case nil: break
        }
        guard record.parent != nil else { return nil }
        if let parent = parent(of: record), parent.endReason(at: now) == nil { return nil }
        return "the grant that created the invite \(record.id) has ended"
    }

    /// Returns the sentence about the last redemption of an invite. After a day, the grant is no longer stored.
    private func use(of record: InviteRecord) -> String {
        let last = state.grantRecords(fromInvite: record.id).max { $0.createdAt < $1.createdAt }
        let grant = last.map { " by the grant \($0.id) at \(LocalTime.text(of: $0.createdAt.date))" }
        return "the invite \(record.id) was used\(grant ?? "")"
    }

    private var isRemote: Bool {
        if case .remote = source { true } else { false }
    }

    /// Identifies the client by its TLS key, which cannot be copied, or else by the key of the redemption.
    private func client(of spec: RedemptionSpec) -> Data {
        // 0xFF is in no UTF-8 text, so no text has the digest of a TLS key.
        let bytes = key.map { [0xFF] + $0.bytes } ?? Array(spec.client.utf8)
        return Data(SHA256.hash(data: Data(bytes)))
    }

    /// Returns whether this client can use a grant that it redeemed before.
    private func isUsable(_ grant: GrantRecord) -> Bool {
        if case .key(let pin) = grant.binding { return isRemote && pin == key }
        return grant.isUsable(from: source)
    }

    private func permissions(of record: InviteRecord, for spec: RedemptionSpec) throws(AccessError) -> Permissions {
        let permissions = spec.permissions ?? record.permissions
        guard permissions.isSubset(of: record.permissions), !permissions.scopes.isEmpty else {
            throw .tooWide("the invite does not allow that; request less, the invite is still valid")
        }
        try permissions.checkTools()
        if permissions.allow(.admin) {
            guard case .user = binding(of: record) else {
                throw .tooWide(
                    "\(Scope.admin.rawValue) requires a user of this machine on the unix socket; the invite is still valid"
                )
            }
        }
        return permissions
    }

    private func binding(of record: InviteRecord) -> GrantBinding {
        if isRemote, record.use == .remote, let key { return .key(key) }
        return record.binding ?? .bearer
    }

    private func parent(of record: InviteRecord) -> GrantRecord? { record.parent.flatMap { state.grants[$0] } }

    private func spend(_ record: InviteRecord, for grant: GrantRecord, purging ids: [String]) -> ChangeSet {
        var spent = record
        spent.useCount += 1
        if spent.useCount == spent.maxUses { spent.endReason = .spent }
        var event = AuditEvent(.redeemed, by: caller, from: source, invite: record.id, grant: grant.id)
        event.subject = grant.name
        event.useCount = spent.useCount
        var change = ChangeSet([event])
        change.spent = spent
        change.purged = ids
        change.grants = [grant]
        return change
    }

    private func previousGrant(from record: InviteRecord, to client: Data) -> GrantRecord? {
        state.grantRecords(fromInvite: record.id).first {
            $0.client == client && now < $0.createdAt + Self.repeatWindow && $0.endReason(at: now) == nil
        }
    }

    private func recordWrongSecret(_ record: InviteRecord) -> Outcome {
        guard record.endReason == nil else { return .refused("wrong secret", nil) }
        var record = record
        record.failedAttempts += 1
        let detail = "wrong secret \(record.failedAttempts) of \(Self.wrongLimit)"
        var event = AuditEvent(.refused, by: .anonymous, from: source, invite: record.id, detail: detail)
        if record.failedAttempts >= Self.wrongLimit {
            record.endReason = .burnt
            event = AuditEvent(.burnt, by: .broker, from: source, invite: record.id)
            event.alert = true
        }
        var change = ChangeSet([event])
        change.invites = [record]
        return .refused("wrong secret", change)
    }
}
