package import Model
import SystemIO

/// The claims of the leases in a team.
extension LeaseService {
    /// Reports that the claims of other hosts have changed, or that the registry of the team is reachable again.
    package func claimsChanged() { claimWakeUps.continuation.yield() }

    /// Ends the leases of phones whose claims the registry may have deleted, because another host may claim them now.
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

    /// Returns the claim of another host on a phone, or on the phone of an endpoint; nil if there is none.
    func foreignClaim(on target: LeaseTarget) -> TeamClaim? {
        guard let foreign = claims?.foreignClaims, !foreign.isEmpty else { return nil }
        switch target {
        case .device: return foreign[target]
        // Only its own host leases an endpoint without a phone.
        case .endpoint(let id): return phones()[id].flatMap { foreign[.device($0)] }
        }
    }
}
