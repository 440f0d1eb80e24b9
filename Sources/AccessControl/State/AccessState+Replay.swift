import Model

/// Replays the audit log over an outdated copy of the database.
extension AccessState {
    /// Returns the change that removes everything that the audit log says has ended. Never adds a permission.
    ///
    /// A grant that was created after the copy stays unknown.
    func replay(_ lines: some Sequence<AuditEntry>, at now: MonotonicTime) -> ChangeSet {
        var state = self
        var sum = ChangeSet()
        for line in lines {
            let change = state.removals(by: line.event, at: now)
            state.apply(change)
            sum = sum + change
        }
        return sum
    }

    private func removals(by event: AuditEvent, at now: MonotonicTime) -> ChangeSet {
        var change = ChangeSet()
        if let id = event.invite, var invite = invites[id] {
            invite.useCount = max(invite.useCount, event.useCount ?? 0)
            if invite.endReason == nil, invite.useCount >= invite.maxUses { invite.endReason = .spent }
            if event.action == .burnt { invite.endReason = .burnt }
            change.invites.append(invite)
        }
        for id in event.ended ?? [] {
            if var invite = invites[id], invite.endReason == nil {
                invite.endReason = .revoked
                change.invites.append(invite)
            }
            if let grant = end(id, as: .revoked, at: now) { change.grants.append(grant) }
        }
        if let endpoint = event.endpoint {
            switch event.action {
            case .approvalWithdrawn:
                change.removedApprovals.append(endpoint)
                change.removedSecrets.append(endpoint)
            case .secretSet, .secretForgotten, .endpointApproved: change.removedSecrets.append(endpoint)
            default: break
            }
        }
        return change
    }
}
