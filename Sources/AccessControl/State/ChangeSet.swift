import Model

/// The changes of one operation, applied as a whole or not at all: rows and audit events.
struct ChangeSet: Sendable {
    /// The invite after this redemption. Its stored row must have one use less (compare-and-set).
    var spent: InviteRecord?
    var invites: [InviteRecord] = []
    var grants: [GrantRecord] = []
    var approvals: [Approval] = []
    var secrets: [SecretRecord] = []
    /// Endpoints that lose their approval (`removedApprovals`) or their secret (`removedSecrets`).
    var removedApprovals: [EndpointID] = []
    var removedSecrets: [EndpointID] = []
    /// IDs of ended invites and grants to delete.
    var purged: [String] = []
    var events: [AuditEvent] = []

    init(_ events: [AuditEvent] = []) { self.events = events }

    /// IDs of the grants that this change ends.
    var endedGrants: [String] { grants.filter { $0.endReason != nil }.map(\.id) }

    /// IDs of the invites and grants that this change ends, sorted.
    var endedIDs: [String] { (invites.filter { $0.endReason != nil }.map(\.id) + endedGrants).sorted() }

    /// Endpoints whose approval or secret this change sets or removes.
    var changedEndpoints: Set<EndpointID> {
        Set(approvals.map(\.endpoint) + secrets.map(\.endpoint) + removedApprovals + removedSecrets)
    }

    /// True if the change may end a permission.
    var altersTrust: Bool { !(changedEndpoints.isEmpty && endedGrants.isEmpty) }

    /// Combines two changes. An approval or a secret that `other` sets overrides its removal in `one`.
    static func + (one: ChangeSet, other: ChangeSet) -> ChangeSet {
        var sum = one
        sum.spent = one.spent ?? other.spent
        sum.invites += other.invites
        sum.grants += other.grants
        sum.approvals += other.approvals
        sum.secrets += other.secrets
        let (approved, sealed) = (Set(other.approvals.map(\.endpoint)), Set(other.secrets.map(\.endpoint)))
        sum.removedApprovals = one.removedApprovals.filter { !approved.contains($0) } + other.removedApprovals
        sum.removedSecrets = one.removedSecrets.filter { !sealed.contains($0) } + other.removedSecrets
        sum.purged += other.purged
        sum.events += other.events
        return sum
    }
}
