import Crypto
import FoundationEssentials
import Model

/// Every invite, grant, approval and sealed secret as it stands, and what each operation would change: the rules of
/// pairing without clock, disk or callers.
///
/// An operation only says what it would change. The store commits that and then has it applied, so that nothing is true
/// here that is not on the disk; only what ends something is applied first.
struct AccessState: Sendable {
    /// Invites, and grants, kept at most, those that ended included.
    static let limit = 65_536
    /// So many places of each are kept for what owners make: who was let in cannot shut them out.
    static let reserve = 4_096
    /// For how many seconds what has ended is remembered, for people; the audit log has it for good.
    static let memory = 86_400

    private(set) var invites: [String: InviteRecord] = [:]
    private(set) var grants: [String: GrantRecord] = [:]
    private(set) var approvals: [EndpointID: Approval] = [:]
    private(set) var secrets: [EndpointID: SecretRecord] = [:]
    private var given: [String: Set<String>] = [:]

    init(_ contents: PersistedState = PersistedState()) {
        var change = ChangeSet()
        change.invites = contents.invites
        change.grants = contents.grants
        change.approvals = contents.approvals
        change.secrets = contents.secrets
        apply(change)
    }

    mutating func apply(_ change: ChangeSet) {
        for invite in change.invites { invites[invite.id] = invite }
        if let spent = change.spent { invites[spent.id] = spent }
        for grant in change.grants {
            grants[grant.id] = grant
            if let invite = grant.invite { given[invite, default: []].insert(grant.id) }
        }
        for approval in change.approvals { approvals[approval.endpoint] = approval }
        for secret in change.secrets { secrets[secret.endpoint] = secret }
        for endpoint in change.unapproved { approvals[endpoint] = nil }
        for endpoint in change.unsealed { secrets[endpoint] = nil }
        for id in change.forgotten {
            invites[id] = nil
            given[id] = nil
            if let invite = grants.removeValue(forKey: id)?.invite { given[invite]?.remove(id) }
        }
    }

    /// Notes that a grant is used; kept on the disk some time later.
    mutating func touch(_ grant: String, at now: MonotonicTime) { grants[grant]?.lastUsed = now }

    /// The grants that an invite gave.
    func given(by invite: String) -> [GrantRecord] { given[invite, default: []].compactMap { grants[$0] } }

    /// The grants themselves and everything that stands under them.
    func family(of ids: some Sequence<String>) -> Set<String> {
        var children: [String: [String]] = [:]
        for grant in grants.values {
            if let parent = grant.parent { children[parent, default: []].append(grant.id) }
        }
        var family: Set<String> = []
        var next = Array(ids)
        while let id = next.popLast() {
            if family.insert(id).inserted { next += children[id, default: []] }
        }
        return family
    }

    /// When the next thing ends by itself; nil when nothing will.
    var deadline: MonotonicTime? {
        let ofGrants = grants.values.lazy.filter { $0.end == nil }.map(\.deadline).min()
        let ofInvites = invites.values.lazy.filter { $0.end == nil }.map(\.expires).min()
        return [ofGrants, ofInvites].compactMap { $0 }.min()
    }

    /// What is forgotten before its time to make room for one more invite: the one that ended first.
    func room(forInviteUnder parent: String?) throws(AccessError) -> [String] {
        if hasRoom(beside: invites.count, parent) { return [] }
        let ended = invites.values.lazy.filter { $0.end != nil }.min { $0.expires < $1.expires }
        guard let ended else { throw .limit("there are too many invites; patchbay revoke --all ends them") }
        return [ended.id]
    }

    /// The same for one more grant.
    func room(forGrantUnder parent: String?) throws(AccessError) -> [String] {
        if hasRoom(beside: grants.count, parent) { return [] }
        let ended = grants.values.lazy.compactMap { grant in grant.ended.map { (id: grant.id, at: $0) } }
            .min { $0.at < $1.at }
        guard let ended else { throw .limit("there are too many grants; revoke some first: patchbay grants") }
        return [ended.id]
    }

    private func hasRoom(beside count: Int, _ parent: String?) -> Bool {
        count < (parent == nil ? Self.limit : Self.limit - Self.reserve)
    }

    /// Ends what has had its time, for good: no clock that is set back revives it. Forgets what ended long ago.
    func sweep(at now: MonotonicTime) -> ChangeSet? {
        var change = ChangeSet()
        var event = AuditEvent(.expired, by: .broker, from: .broker)
        for invite in invites.values {
            if invite.end == nil, now >= invite.expires {
                var invite = invite
                invite.end = .expired
                change.invites.append(invite)
            } else if now >= invite.expires + Self.memory {
                change.forgotten.append(invite.id)
            }
        }
        var due: [String: Grant.End] = [:]
        for grant in grants.values {
            if let ended = grant.ended {
                if now >= ended + Self.memory { change.forgotten.append(grant.id) }
            } else if let end = grant.end(at: now) {
                due[grant.id] = end
            }
        }
        let family = family(of: due.keys)
        change.grants = family.sorted().compactMap { end($0, as: due[$0] ?? .expired, at: now) }
        change.invites += openInvites(under: family)
        let ended = (change.invites.map(\.id) + change.endedGrants).sorted()
        guard !ended.isEmpty || !change.forgotten.isEmpty else { return nil }
        if !ended.isEmpty {
            event.ended = ended
            change.events = [event]
        }
        return change
    }

    /// Ends what was made later than now, by a clock that was wrong.
    func endFuture(at now: MonotonicTime) -> ChangeSet {
        var change = ChangeSet()
        change.invites = invites.values.filter { $0.end == nil && $0.created > now }.map {
            var invite = $0
            invite.end = .expired
            return invite
        }
        let future = family(of: grants.values.filter { $0.created > now }.map(\.id))
        change.grants = grants.values.compactMap { grant in
            if future.contains(grant.id) { return end(grant.id, as: .expired, at: now) }
            guard grant.end == nil, grant.lastUsed > now else { return nil }
            var grant = grant
            grant.lastUsed = now
            return grant
        }
        let closed = Set(change.invites.map(\.id))
        change.invites += openInvites(under: future).filter { !closed.contains($0.id) }
        return change
    }

    /// The record of a grant that ends now; nil when there is none or it has ended already.
    func end(_ id: String, as end: Grant.End, at now: MonotonicTime) -> GrantRecord? {
        guard var grant = grants[id], grant.end == nil else { return nil }
        grant.end = end
        grant.ended = now
        return grant
    }

    /// The invites, closed, that would still give something under grants that end.
    func openInvites(under family: Set<String>) -> [InviteRecord] {
        invites.values.filter { $0.end == nil && $0.parent.map(family.contains) == true }.map {
            var invite = $0
            invite.end = .revoked
            return invite
        }
    }
}

/// What one operation changes, all of it or nothing: rows, and what the audit log says.
struct ChangeSet: Sendable {
    /// The invite that this spends once, as it is afterwards; its row must be as the ledger saw it.
    var spent: InviteRecord?
    var invites: [InviteRecord] = []
    var grants: [GrantRecord] = []
    var approvals: [Approval] = []
    var secrets: [SecretRecord] = []
    /// Endpoints that lose their approval, and those that lose their secret.
    var unapproved: [EndpointID] = []
    var unsealed: [EndpointID] = []
    /// Ids of invites and grants that ended long ago.
    var forgotten: [String] = []
    var events: [AuditEvent] = []

    /// The grants that end by it.
    var endedGrants: [String] { grants.filter { $0.end != nil }.map(\.id) }

    /// Whether something that was allowed before may not be allowed any more.
    var altersTrust: Bool {
        !(approvals.isEmpty && secrets.isEmpty && unapproved.isEmpty && unsealed.isEmpty && endedGrants.isEmpty)
    }

    /// What `other` gives is given, also where `one` took it away.
    static func + (one: ChangeSet, other: ChangeSet) -> ChangeSet {
        var sum = one
        sum.spent = one.spent ?? other.spent
        sum.invites += other.invites
        sum.grants += other.grants
        sum.approvals += other.approvals
        sum.secrets += other.secrets
        let (approved, sealed) = (Set(other.approvals.map(\.endpoint)), Set(other.secrets.map(\.endpoint)))
        sum.unapproved = one.unapproved.filter { !approved.contains($0) } + other.unapproved
        sum.unsealed = one.unsealed.filter { !sealed.contains($0) } + other.unsealed
        sum.forgotten += other.forgotten
        sum.events += other.events
        return sum
    }
}
