import Model

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
