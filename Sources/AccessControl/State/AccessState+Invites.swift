import Crypto
import FoundationEssentials
import Model

/// Creation of invites. `InviteRedemptionEvaluator` redeems them.
extension AccessState {
    /// Maximum number of invites that one grant can create in `inviteWindow` seconds, ended ones included. Each invite is
    /// a write to the disk.
    static let maxInvitesPerGrant = 64
    static let inviteWindow = 3_600

    /// Creates an invite. The caller is an owner or the holder of the named grant.
    func invite(
        _ spec: InviteSpec,
        as token: Token,
        by caller: AuditActor,
        from source: RequestSource,
        at now: MonotonicTime
    ) throws(AccessError) -> ChangeSet {
        try spec.check()
        let lifetime = spec.lifetimeSeconds ?? InviteSpec.defaultLifetime
        var expires = now + lifetime
        var grantLifetime = spec.grantLifetimeSeconds ?? spec.defaultGrantLifetime
        var parent: String?
        if case .grant(let id) = caller {
            let own = try invitingGrant(id, for: spec, at: now)
            let left = Int((own.expiresAt - now).components.seconds)
            guard (spec.grantLifetimeSeconds ?? 1) <= left, lifetime <= left else {
                throw .tooWide("a child grant or an invite cannot outlive its grant")
            }
            grantLifetime = min(grantLifetime, max(1, left))
            expires = min(expires, own.expiresAt)
            parent = id
        }
        var change = ChangeSet([AuditEvent(.invited, by: caller, from: source, invite: token.id)])
        change.purged = try evictions(forInviteUnder: parent)
        change.invites = [
            InviteRecord(
                id: token.id,
                digest: Data(token.digest),
                permissions: spec.permissions,
                use: spec.use,
                maxUses: spec.maxUses ?? 1,
                createdBy: caller,
                parent: parent,
                createdAt: now,
                expiresAt: expires,
                grantLifetimeSeconds: grantLifetime,
                grantIdleSeconds: spec.grantIdleSeconds ?? spec.defaultGrantIdle,
                binding: spec.user.map(GrantBinding.user)
            )
        ]
        return change
    }

    /// Returns the grant under which a caller wants to create an invite.
    private func invitingGrant(
        _ id: String,
        for spec: InviteSpec,
        at now: MonotonicTime
    ) throws(AccessError) -> GrantRecord {
        guard let grant = grants[id], grant.endReason(at: now) == nil else { throw .refused }
        guard grant.permissions.allow(.inviteCreate) else {
            throw .tooWide("the grant does not have the scope \(Scope.inviteCreate.rawValue)")
        }
        guard spec.permissions.isSubset(of: grant.permissions) else {
            throw .tooWide("a grant cannot give scopes, endpoints or tools that it does not have")
        }
        guard !spec.isForOtherMachines || grant.remote == true else {
            throw .tooWide("a grant for this machine cannot invite clients on other machines")
        }
        if case .key = grant.binding, spec.use == .bearer {
            throw .tooWide(
                "a grant that is bound to a key cannot create an invite for a token, which can be copied; use \"remote\""
            )
        }
        let recent = invites.values.count { $0.parent == id && now < $0.createdAt + Self.inviteWindow }
        guard recent < Self.maxInvitesPerGrant else {
            throw .limit("a grant can create \(Self.maxInvitesPerGrant) invites in an hour, and \(id) has done so")
        }
        return grant
    }
}
