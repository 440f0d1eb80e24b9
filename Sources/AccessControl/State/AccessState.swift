import Model

/// Every invite, grant, approval, denial and sealed secret, and the transitions between states. Has no clock, disk or callers.
///
/// An operation returns a `ChangeSet` and changes nothing. `AccessStore` commits the change and then applies the
/// change, so the state never runs ahead of the disk. Exception: a change that ends something is applied before the
/// commit.
struct AccessState: Sendable {
    /// Maximum number of invites and of grants, including ended ones.
    static let limit = 65_536
    /// Number of places of each that are reserved for owners, so that grant holders cannot exhaust them.
    static let ownerReserve = 4_096
    /// Seconds that an ended invite or grant stays listed. The audit log keeps its entries forever.
    static let retention = 86_400

    private(set) var invites: [String: InviteRecord] = [:]
    private(set) var grants: [String: GrantRecord] = [:]
    private(set) var approvals: [EndpointID: Approval] = [:]
    private(set) var denials: [EndpointID: Denial] = [:]
    private(set) var secrets: [EndpointID: SecretRecord] = [:]
    private var grantIDsByInvite: [String: Set<String>] = [:]
    private var grantIDsByKey: [KeyPin: Set<String>] = [:]

    init(_ contents: PersistedState = PersistedState()) {
        var change = ChangeSet()
        change.invites = contents.invites
        change.grants = contents.grants
        change.approvals = contents.approvals
        change.denials = contents.denials
        change.secrets = contents.secrets
        apply(change)
    }

    /// Applies a change to the records.
    mutating func apply(_ change: ChangeSet) {
        for invite in change.invites { invites[invite.id] = invite }
        if let spent = change.spent { invites[spent.id] = spent }
        for grant in change.grants {
            grants[grant.id] = grant
            if let invite = grant.invite { grantIDsByInvite[invite, default: []].insert(grant.id) }
            if case .key(let key) = grant.binding { grantIDsByKey[key, default: []].insert(grant.id) }
        }
        for approval in change.approvals { approvals[approval.endpoint] = approval }
        for denial in change.denials { denials[denial.endpoint] = denial }
        for secret in change.secrets { secrets[secret.endpoint] = secret }
        for endpoint in change.removedApprovals { approvals[endpoint] = nil }
        for endpoint in change.removedDenials { denials[endpoint] = nil }
        for endpoint in change.removedSecrets { secrets[endpoint] = nil }
        for id in change.purged {
            invites[id] = nil
            grantIDsByInvite[id] = nil
            guard let grant = grants.removeValue(forKey: id) else { continue }
            if let invite = grant.invite { grantIDsByInvite[invite]?.remove(id) }
            if case .key(let key) = grant.binding {
                grantIDsByKey[key]?.remove(id)
                if grantIDsByKey[key]?.isEmpty == true { grantIDsByKey[key] = nil }
            }
        }
    }

    /// Records the use of a grant. `AccessStore` saves the time later.
    mutating func touch(_ grant: String, at now: MonotonicTime) { grants[grant]?.lastUsedAt = now }

    /// The endpoints that a grant, an open invite, an approval, a denial or a secret names by ID.
    var namedEndpoints: Set<EndpointID> {
        let grants = grants.values.lazy.filter { $0.endReason == nil }.map(\.permissions.selector)
        let invites = invites.values.lazy.filter { $0.endReason == nil }.map(\.permissions.selector)
        var ids = Set(approvals.keys).union(denials.keys).union(secrets.keys)
        for case .endpoints(let named) in [Array(grants), Array(invites)].joined() { ids.formUnion(named) }
        return ids
    }

    /// Returns the grants that were created by an invite.
    func grantRecords(fromInvite invite: String) -> [GrantRecord] {
        grantIDsByInvite[invite, default: []].compactMap { grants[$0] }
    }

    /// Returns the grants that are bound to a key.
    func grantRecords(boundTo key: KeyPin) -> [GrantRecord] {
        grantIDsByKey[key, default: []].compactMap { grants[$0] }
    }

    /// Returns the given grants and all grants below them.
    func descendants(of ids: some Sequence<String>) -> Set<String> {
        var children: [String: [String]] = [:]
        for grant in grants.values {
            if let parent = grant.parent { children[parent, default: []].append(grant.id) }
        }
        var descendants: Set<String> = []
        var next = Array(ids)
        while let id = next.popLast() {
            if descendants.insert(id).inserted { next += children[id, default: []] }
        }
        return descendants
    }

    /// The next time at which an invite or a grant expires; nil when none will.
    var deadline: MonotonicTime? {
        let ofGrants = grants.values.lazy.filter { $0.endReason == nil }.map(\.deadline).min()
        let ofInvites = invites.values.lazy.filter { $0.endReason == nil }.map(\.expiresAt).min()
        return [ofGrants, ofInvites].compactMap { $0 }.min()
    }

    /// Returns the IDs to purge early to make room for one more invite: the invite that ended first.
    func evictions(forInviteUnder parent: String?) throws(AccessError) -> [String] {
        if hasRoom(beside: invites.count, under: parent) { return [] }
        let ended = invites.values.lazy.filter { $0.endReason != nil }.min { $0.expiresAt < $1.expiresAt }
        guard let ended else { throw .limit("there are too many invites; patchbay revoke --all ends them") }
        return [ended.id]
    }

    /// Returns the IDs to purge early to make room for one more grant: the grant that ended first.
    func evictions(forGrantUnder parent: String?) throws(AccessError) -> [String] {
        if hasRoom(beside: grants.count, under: parent) { return [] }
        let ended = grants.values.lazy.compactMap { grant in grant.endedAt.map { (id: grant.id, at: $0) } }
            .min { $0.at < $1.at }
        guard let ended else { throw .limit("there are too many grants; revoke some first: patchbay grants") }
        return [ended.id]
    }

    private func hasRoom(beside count: Int, under parent: String?) -> Bool {
        count < (parent == nil ? Self.limit : Self.limit - Self.ownerReserve)
    }

    /// Ends expired invites and grants permanently, so that a clock that is set back does not revive them. Purges those
    /// that ended more than `retention` seconds ago.
    func expire(at now: MonotonicTime) -> ChangeSet? {
        var change = ChangeSet()
        for invite in invites.values {
            if invite.endReason == nil, now >= invite.expiresAt {
                var invite = invite
                invite.endReason = .expired
                change.invites.append(invite)
            } else if now >= invite.expiresAt + Self.retention {
                change.purged.append(invite.id)
            }
        }
        var due: [String: Grant.EndReason] = [:]
        for grant in grants.values {
            if let ended = grant.endedAt {
                if now >= ended + Self.retention { change.purged.append(grant.id) }
            } else if let end = grant.endReason(at: now) {
                due[grant.id] = end
            }
        }
        let descendants = descendants(of: due.keys)
        change.grants = descendants.sorted().compactMap { end($0, as: due[$0] ?? .expired, at: now) }
        change.invites += openInvites(under: descendants)
        let ended = change.endedIDs
        guard !ended.isEmpty || !change.purged.isEmpty else { return nil }
        if !ended.isEmpty { change.events = [AuditEvent(.expired, by: .broker, from: .broker, ended: ended)] }
        return change
    }

    /// Ends invites and grants that were created in the future, while the clock was wrong.
    func endFuture(at now: MonotonicTime) -> ChangeSet {
        var change = ChangeSet()
        change.invites = invites.values.filter { $0.endReason == nil && $0.createdAt > now }.map {
            var invite = $0
            invite.endReason = .expired
            return invite
        }
        let future = descendants(of: grants.values.filter { $0.createdAt > now }.map(\.id))
        change.grants = grants.values.compactMap { grant in
            if future.contains(grant.id) { return end(grant.id, as: .expired, at: now) }
            guard grant.endReason == nil, grant.lastUsedAt > now else { return nil }
            var grant = grant
            grant.lastUsedAt = now
            return grant
        }
        let closed = Set(change.invites.map(\.id))
        change.invites += openInvites(under: future).filter { !closed.contains($0.id) }
        return change
    }

    /// Returns the record of a grant that ends now; nil when the grant is unknown or has ended already.
    func end(_ id: String, as end: Grant.EndReason, at now: MonotonicTime) -> GrantRecord? {
        guard var grant = grants[id], grant.endReason == nil else { return nil }
        grant.endReason = end
        grant.endedAt = now
        return grant
    }

    /// Returns the open invites that were created under ending grants, marked as revoked.
    func openInvites(under descendants: Set<String>) -> [InviteRecord] {
        invites.values.filter { $0.endReason == nil && $0.parent.map(descendants.contains) == true }.map {
            var invite = $0
            invite.endReason = .revoked
            return invite
        }
    }
}
