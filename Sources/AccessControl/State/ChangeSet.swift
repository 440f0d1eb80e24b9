import Model

/// The changes of one operation, applied as a whole or not at all: rows and audit events.
struct ChangeSet: Sendable {
    /// The invite after this redemption. Its stored row must have one use less (compare-and-set).
    var spent: InviteRecord?
    var invites: [InviteRecord] = []
    var grants: [GrantRecord] = []
    var approvals: [Approval] = []
    var denials: [Denial] = []
    var secrets: [SecretRecord] = []
    /// Endpoints that lose their approval, their denial or their secret.
    var removedApprovals: [EndpointID] = []
    var removedDenials: [EndpointID] = []
    var removedSecrets: [EndpointID] = []
    /// IDs of ended invites and grants to delete.
    var purged: [String] = []
    var events: [AuditEvent] = []

    init(_ events: [AuditEvent] = []) { self.events = events }

    /// IDs of the grants that this change ends.
    var endedGrants: [String] { grants.filter { $0.endReason != nil }.map(\.id) }

    /// IDs of the invites and grants that this change ends, sorted.
    var endedIDs: [String] { (invites.filter { $0.endReason != nil }.map(\.id) + endedGrants).sorted() }

    /// Endpoints whose approval, denial or secret this change sets or removes.
    var changedEndpoints: Set<EndpointID> {
        Set(approvals.map(\.endpoint) + denials.map(\.endpoint) + secrets.map(\.endpoint))
            .union(removedApprovals + removedDenials + removedSecrets)
    }

    /// True if the change may end a permission.
    var altersTrust: Bool { !(changedEndpoints.isEmpty && endedGrants.isEmpty) }

    /// Combines two changes. What `other` sets overrides its removal in `one`.
    static func + (one: ChangeSet, other: ChangeSet) -> ChangeSet {
        var sum = one
        sum.spent = one.spent ?? other.spent
        sum.invites += other.invites
        sum.grants += other.grants
        sum.approvals += other.approvals
        sum.denials += other.denials
        sum.secrets += other.secrets
        func removed(_ one: [EndpointID], besides set: [EndpointID]) -> [EndpointID] {
            let set = Set(set)
            return one.filter { !set.contains($0) }
        }
        sum.removedApprovals = removed(one.removedApprovals, besides: other.approvals.map(\.endpoint))
        sum.removedApprovals += other.removedApprovals
        sum.removedDenials = removed(one.removedDenials, besides: other.denials.map(\.endpoint)) + other.removedDenials
        sum.removedSecrets = removed(one.removedSecrets, besides: other.secrets.map(\.endpoint)) + other.removedSecrets
        sum.purged += other.purged
        sum.events += other.events
        return sum
    }
}
