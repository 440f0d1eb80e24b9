import FoundationEssentials
package import Model
import SystemIO

/// The leases as other clients see them, and the checks of their calls.
extension LeaseService {
    /// The number of held leases.
    package var count: Int { current.leases.count }

    /// The use of this host's leases in the last 24 hours, with those that are held now.
    package var uses: [LeaseUse] {
        let time = time
        let held = current.leases.map(\.lease).filter { !$0.isPending }.map { $0.use(until: time.elapsed, at: time) }
        return history.uses + held
    }

    /// False if no lease is held, also by other hosts. Fast enough for each connection; true also for a lease that ends at
    /// this moment.
    package var mayHaveLeases: Bool { hasEntries || !(claims?.foreignClaims.isEmpty ?? true) }

    /// Returns the held leases of endpoints, as a principal sees them, also those that other hosts granted.
    ///
    /// A lease names an endpoint that the principal may see: its own, or another one that it covers.
    package func leases(of endpoints: [Endpoint], for principal: Principal) -> [Lease] {
        let leases = current.leases
        guard !leases.isEmpty else { return claims?.foreignLeases(of: endpoints, for: principal) ?? [] }
        let visible = Dictionary(grouping: endpoints, by: LeaseTarget.init)
        let own = leases.compactMap { lease, waiting -> Lease? in
            let covered = lease.targets.flatMap { visible[$0] ?? [] }.sorted { $0.id < $1.id }
            guard let endpoint = covered.first(where: { $0.id == lease.request.endpoint }) ?? covered.first else {
                return nil
            }
            return lease.view(at: endpoint, waiting: waiting, for: principal, at: time)
        }
        return own + (claims?.foreignLeases(of: endpoints, for: principal) ?? [])
    }

    /// Returns the endpoints with their leases filled in.
    package func withLeases(_ endpoints: [Endpoint], for principal: Principal) -> [Endpoint] {
        let (table, foreign) = (current, claims?.foreignClaims ?? [:])
        let leases = table.leases
        guard !leases.isEmpty || !foreign.isEmpty else { return endpoints }
        return endpoints.map { endpoint in
            var leased = endpoint
            let target = LeaseTarget(endpoint)
            if let claim = foreign[target] ?? claims?.foreignClaim(on: target, phones) {
                leased.lease = claim.lease(at: endpoint, for: principal)
            } else {
                let number = table.leases(on: target).first?.number
                guard let (lease, waiting) = leases.first(where: { $0.lease.number == number }) else { return endpoint }
                leased.lease = lease.view(at: endpoint, waiting: waiting, for: principal, at: time)
            }
            return leased
        }
    }

    /// Begins a changing call of an endpoint. While the call runs, no other client gets the lease.
    ///
    /// - Returns: The number of the call, to pass to `endCall`.
    /// - Throws: `AccessError.leased`, for every client also while another host has the claim of the phone. The
    ///   holder of a lease whose claim was lost gets it until it asks for the lease again or gives it up.
    package func beginCall(of endpoint: Endpoint, by holder: LeaseHolder) throws(AccessError) -> UInt64 {
        let target = LeaseTarget(endpoint)
        if let conflict = claimConflict(on: target, holderKey: holder.key) { throw .leased(conflict) }
        let number = update { table, now in table.beginCall(on: target, by: holder, at: now) }
        guard let number else { throw .leased(conflict(on: target, for: holder)) }
        return number
    }

    package func endCall(_ number: UInt64) { update { table, now in table.endCall(number, at: now) } }

    /// Returns the conflict of a new connection; nil if no other client has the lease. While another host has the claim of
    /// the phone, every client has a conflict.
    package func connectionConflict(on target: LeaseTarget, holderKey: String) -> LeaseConflict? {
        if let conflict = claimConflict(on: target, holderKey: holderKey) { return conflict }
        return current.leases(on: target).first { $0.holder.key != holderKey }.map { $0.conflict(on: target, at: time) }
    }

    /// Returns the conflict with the client's own lease whose claim was lost or has lapsed, or with the claim of another
    /// host.
    private func claimConflict(on target: LeaseTarget, holderKey: String) -> LeaseConflict? {
        guard let claims else { return nil }
        let own = hasEntries ? claims.ownConflict(on: target, of: holderKey, in: current, at: time) : nil
        if let own { return own }
        return claims.foreignClaim(on: target, phones).map { LeaseConflict($0, on: target) }
    }

    /// Returns the conflict of a request that was refused.
    func conflict(on target: LeaseTarget, for holder: LeaseHolder) -> LeaseConflict {
        connectionConflict(on: target, holderKey: holder.key)
            ?? LeaseConflict(target: target, holder: nil, seconds: 1, end: LocalTime.text(of: time.date))
    }
}
