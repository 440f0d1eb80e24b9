package import Model

/// The claims behind the leases of this host in a team: entries of the team's registry, at most one for each phone.
///
/// Several hosts may reach one phone. The host that creates the claim of the phone first may lease the phone. The other
/// hosts see the claim and refuse all clients meanwhile. A claim gives its host nothing else, so a forged one only refuses.
package protocol LeaseClaims: Sendable {
    /// The claims of the other hosts, by target. Read for each changing call and each connection, so it must be fast.
    var foreignClaims: [LeaseTarget: TeamClaim] { get }

    /// Creates a claim, or replaces the claim of this host for the same target.
    ///
    /// - Throws: `LeaseClaimError`, after a few seconds at most.
    func acquire(_ claim: LeaseClaim) async throws(LeaseClaimError)

    /// Deletes the claim of this host, if there is one.
    ///
    /// - Throws: `LeaseClaimError.unreachable`; the caller tries again.
    func release(_ target: LeaseTarget) async throws(LeaseClaimError)
}

/// The claim of one target of a lease.
package struct LeaseClaim: Hashable, Sendable {
    /// A phone, or an endpoint of this host.
    package let target: LeaseTarget
    /// The ID of the lease on this host.
    package let lease: String
    /// The endpoint that the lease was requested for, as this host names it.
    package let endpoint: EndpointID
    /// The phone that the lease covers; nil if none is known.
    package let device: UDID?
    package let holder: LeaseHolder
    /// The length of the lease in seconds.
    package let seconds: Int
    package let note: SanitizedText?
}

package enum LeaseClaimError: Error, Hashable, Sendable {
    /// Another host has the claim.
    case held(TeamClaim)
    /// The registry of the team did not store the claim; with the reason.
    case unreachable(reason: String)
}

extension LeaseClaimError {
    /// The error for the client that requested the lease.
    func accessError(on target: LeaseTarget) -> AccessError {
        switch self {
        case .held(let claim): .leased(LeaseConflict(claim, on: target))
        case .unreachable(let reason): .claimNotStored(target.name, reason: reason)
        }
    }
}

extension LeaseConflict {
    /// The conflict with a lease that another host granted. Its end is known to that host only.
    init(_ claim: TeamClaim, on target: LeaseTarget) {
        self.init(target: target, holder: claim.holder, host: claim.host, seconds: nil, end: nil)
    }
}

extension TeamClaim {
    /// True if the client of this broker holds the lease at the other host.
    func isOwn(of principal: Principal) -> Bool {
        guard let host = principal.host else { return false }
        return holderKey == MemberClient.holderPrefix(of: host) + principal.leaseHolder.key
    }

    /// Returns the lease behind the claim, as a client of this broker sees it at an endpoint.
    ///
    /// The ID ends with the host: `l3.lab2`. The end and the number of waiting clients are known to that host only.
    func lease(at endpoint: Endpoint, for principal: Principal) -> Lease {
        let isOfMember = holderKey?.hasPrefix(MemberClient.holderPrefix) ?? false
        return Lease(
            id: "\(lease ?? "l").\(host)",
            endpoint: endpoint.id,
            device: principal.canSeeAllEndpoints ? device : endpoint.location.udid,
            // The name of a client of a third host has its host already.
            holder: isOfMember ? holder : SanitizedText("\(holder) on \(host)"),
            isOwn: isOwn(of: principal),
            note: note,
            seconds: seconds ?? LeaseSpec.standardSeconds,
            createdAt: createdAt,
            expiresAt: nil,
            waiting: nil
        )
    }
}
