package import FoundationEssentials
package import Model
import SystemIO

/// The claims behind the leases of this host in a team: entries of the team's registry, at most one for each phone or
/// endpoint.
///
/// Several hosts may reach one phone. The host that creates the claim of the phone first may lease the phone. The other
/// hosts see the claim and refuse all clients meanwhile. A claim gives its host nothing else, so a forged one only
/// refuses.
package protocol LeaseClaims: Sendable {
    /// The claims of the other hosts, by target. Read for each changing call and each connection, so it must be fast.
    var foreignClaims: [LeaseTarget: TeamClaim] { get }

    /// Returns whether the claim of this host certainly stands at this moment. Read for each changing call and each
    /// connection under a lease of a phone, so it must be fast.
    func isHeld(_ target: LeaseTarget) -> Bool

    /// Creates a claim, or replaces the claim of this host for the same target.
    ///
    /// - Throws: `LeaseClaimError`, after a few seconds at most.
    func acquire(_ claim: LeaseClaim) async throws(LeaseClaimError)

    /// Deletes the claim of this host, if there is one. Returns at once; the deletion is repeated until it succeeds.
    func release(_ target: LeaseTarget)
}

extension LeaseClaims {
    /// Returns the claim of another host on a phone, or on the phone of an endpoint; nil if there is none.
    /// `phones` returns the phones of endpoints without a cable.
    func foreignClaim(on target: LeaseTarget, _ phones: () -> [EndpointID: UDID]) -> TeamClaim? {
        let foreign = foreignClaims
        guard !foreign.isEmpty else { return nil }
        switch target {
        case .device: return foreign[target]
        // Only its own host leases an endpoint without a phone.
        case .endpoint(let id): return phones()[id].flatMap { foreign[.device($0)] }
        }
    }

    /// Returns the leases that other hosts granted. The client of another host gets them from its own broker.
    func foreignLeases(of endpoints: [Endpoint], for principal: Principal) -> [Lease] {
        let foreign = foreignClaims
        guard !foreign.isEmpty, principal.member == nil else { return [] }
        var shown: [TeamClaim: Endpoint] = [:]
        for endpoint in endpoints {
            guard let claim = foreign[LeaseTarget(endpoint)] else { continue }
            let isBetter = shown[claim].map { $0.id != claim.endpoint && endpoint.id < $0.id } ?? true
            if isBetter || endpoint.id == claim.endpoint { shown[claim] = endpoint }
        }
        return shown.map { claim, endpoint in claim.lease(at: endpoint, for: principal) }.sorted { $0.id < $1.id }
    }

    /// Returns the conflict of a client whose own lease has lost its claim, or holds one that has lapsed.
    func ownConflict(
        on target: LeaseTarget,
        of key: String,
        in table: LeaseTable,
        at time: LeaseTime
    ) -> LeaseConflict? {
        if let lost = table.ended.lost(on: table.targets(of: target), of: key) {
            return LeaseConflict(lost: lost, on: target, at: time)
        }
        return lapsedLease(on: target, of: key, in: table).map { LeaseConflict(lapsed: $0, on: target, at: time) }
    }

    /// Returns the lease of a client on a target whose claim has lapsed, and whose end has not been reported yet.
    ///
    /// A process that was paused may call this before it learns that its claims have ended.
    func lapsedLease(on target: LeaseTarget, of key: String, in table: LeaseTable) -> LeaseEntry? {
        table.leases(on: target).first { lease in
            lease.holder.key == key && table.claimedPhone(of: lease).map { !isHeld($0) } ?? false
        }
    }
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

extension TeamClaim {
    /// The entry of a claim in the registry of the team.
    package init(_ claim: LeaseClaim, of host: HostName, createdAt: Date) {
        self.init(
            host: host,
            endpoint: claim.endpoint.on(host),
            device: claim.device,
            holder: claim.holder.name,
            holderKey: claim.holder.key,
            lease: claim.lease,
            seconds: claim.seconds,
            note: claim.note,
            createdAt: createdAt
        )
    }
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

    /// The conflict of a client whose own lease has lost its claim. Another host may have leased the phone.
    init(lapsed lease: LeaseEntry, on target: LeaseTarget, at time: LeaseTime) {
        let ending = Self.ending(of: lease.number, at: time.date, because: Self.lostRegistry)
        self.init(target: target, holder: nil, ending: ending, seconds: nil, end: nil)
    }

    /// The conflict of a client whose own lease has ended without its knowledge.
    init(lost lease: EndedLeases.Entry, on target: LeaseTarget, at time: LeaseTime) {
        let ending = Self.ending(of: lease.number, at: time.date(of: lease.end), because: lease.reason)
        self.init(target: target, holder: nil, ending: ending, seconds: nil, end: nil)
    }

    private static func ending(of number: UInt64, at date: Date, because reason: String) -> String {
        "your lease l\(number) ended at \(LocalTime.text(of: date)), because \(reason); ask for the lease again, or give it up"
    }

    /// The reason for the end of leases whose claims the team registry may have deleted.
    package static let lostRegistry = "the host lost its connection to the registry of the team"
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
