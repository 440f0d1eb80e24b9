package import Model
import SystemIO

/// The claims of the leases in a team.
extension LeaseService {
    /// Reports that the claims of other hosts have changed, or that the registry of the team is reachable again.
    package func claimsChanged() { claimWakeUps.continuation.yield() }

    /// Ends the leases of phones whose claims the team registry may have deleted, because another host may claim them
    /// now.
    ///
    /// - Parameters:
    ///   - targets: The targets of the claims.
    ///   - reason: A sentence without a full stop. A later renewal gives it as the reason.
    package func endClaimed(_ targets: Set<LeaseTarget>, because reason: String) {
        update { table, now in table.loseClaims(of: targets, because: reason, at: now) }
        claimsChanged()
    }

    /// Ends the leases of the clients of a host that was removed from the team.
    package func endLeases(ofClientsOn host: HostName) {
        update { table, now in
            for (lease, _) in table.leases where lease.holder.host == host {
                table.end(lease.number, because: "the host \(host) was removed from the team", at: now)
            }
        }
    }
}
