import Model

/// Catching up with the audit log, when the database is an old copy.
extension AccessState {
    /// What lines of the log take away that the ledger still gives; they never give anything back.
    ///
    /// A grant that was made after the copy stays unknown; one whose secret was replaced after it is ended, as nobody
    /// knows any more which secret is the right one.
    func replay(_ lines: some Sequence<AuditEntry>, at now: MonotonicTime) -> ChangeSet {
        var ledger = self
        var sum = ChangeSet()
        for line in lines {
            let change = ledger.loss(by: line.event, at: now)
            ledger.apply(change)
            sum = sum + change
        }
        return sum
    }

    private func loss(by event: AuditEvent, at now: MonotonicTime) -> ChangeSet {
        var change = ChangeSet()
        if let id = event.invite, var invite = invites[id] {
            invite.used = max(invite.used, event.used ?? 0)
            if invite.end == nil, invite.used >= invite.uses { invite.end = .spent }
            if event.action == .burnt { invite.end = .burnt }
            change.invites.append(invite)
        }
        for id in event.ended ?? [] {
            if var invite = invites[id], invite.end == nil {
                invite.end = .revoked
                change.invites.append(invite)
            }
            if let grant = end(id, as: .revoked, at: now) { change.grants.append(grant) }
        }
        if event.action == .rotated, let grant = event.grant.flatMap({ end($0, as: .revoked, at: now) }) {
            change.grants.append(grant)
        }
        if let endpoint = event.endpoint {
            switch event.action {
            case .approvalWithdrawn:
                change.unapproved.append(endpoint)
                change.unsealed.append(endpoint)
            case .secretSet, .secretForgotten, .endpointApproved: change.unsealed.append(endpoint)
            default: break
            }
        }
        return change
    }
}
