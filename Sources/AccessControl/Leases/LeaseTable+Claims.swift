import Model

/// The claims of this host, in a team.
struct HeldClaims: Sendable {
    /// The claims in the team registry, with their content.
    fileprivate(set) var held: [LeaseTarget: LeaseClaim] = [:]
    /// The targets whose claims must be deleted from the team registry, or acquired again.
    fileprivate var obsolete: Set<LeaseTarget> = []
    /// The phones of leases that are older than the team, until their claims are held.
    fileprivate var unclaimed: Set<LeaseTarget> = []
}

/// A change of the team registry that brings it closer to the leases.
enum LeaseClaimStep: Hashable, Sendable {
    case acquire(LeaseClaim)
    case release(LeaseTarget)
}

/// The claims of leases in a team (`LeaseClaims`).
///
/// A lease of a phone is pending until this host holds the claim of the phone. A lease that gets a phone later, through
/// a link, is not delayed. Claims of endpoints only show the lease to other hosts.
extension LeaseTable {
    /// Begins to need claims, or ends that. The leases stay; a pending one is granted if it needed only a claim.
    mutating func setNeedsClaims(_ needsClaims: Bool, at now: Duration) {
        var new = HeldClaims()
        new.unclaimed = Set(owners.filter { entries[$0.value]?.isPending == false }.keys.filter { $0.device != nil })
        claims = needsClaims ? new : nil
        claimGeneration += 1
        advance(at: now)
    }

    /// The phones whose leases end if another host has the claim.
    var usedPhones: Set<LeaseTarget> {
        guard let claims else { return [] }
        return claims.unclaimed.union(claims.held.keys.filter { $0.device != nil })
    }

    /// The claims that the leases need, held and pending. Empty without a team.
    var neededClaims: [LeaseTarget: LeaseClaim] {
        guard claims != nil, !owners.isEmpty else { return [:] }
        return owners.reduce(into: [:]) { needed, owner in
            guard let lease = entries[owner.value] else { return }
            needed[owner.key] = LeaseClaim(
                target: owner.key,
                lease: lease.id,
                endpoint: lease.request.endpoint,
                device: lease.device,
                holder: lease.holder,
                seconds: Int(lease.length / .seconds(1)),
                note: lease.note
            )
        }
    }

    /// Returns the next changes of the team registry, at most one for each target.
    mutating func nextClaimSteps() -> [LeaseClaimStep] {
        guard var claims else { return [] }
        let needed = neededClaims
        // A claim that will be deleted must not grant a lease.
        for target in claims.held.keys where needed[target] == nil {
            claims.held[target] = nil
            claims.obsolete.insert(target)
        }
        claims.unclaimed.formIntersection(needed.keys)
        let released = claims.obsolete.subtracting(needed.keys)
        claims.obsolete = []
        self.claims = claims
        return released.map(LeaseClaimStep.release)
            + needed.values.filter { claims.held[$0.target] != $0 }.map(LeaseClaimStep.acquire)
    }

    /// Reports that the team registry has a claim of this host. Grants the pending lease that needs no other claim.
    ///
    /// - Parameters:
    ///   - claim: The claim.
    ///   - generation: The generation at the request for the claim; nil for the current one.
    ///   - now: The current time.
    mutating func acquired(_ claim: LeaseClaim, since generation: UInt64? = nil, at now: Duration) {
        guard let claims else { return }
        let isCurrent = generation.map { $0 == claimGeneration } ?? true
        guard isCurrent || claims.held[claim.target] != nil else {
            // The claims lost since the request may include this one. It is acquired again or deleted.
            self.claims?.obsolete.insert(claim.target)
            return
        }
        self.claims?.held[claim.target] = claim
        self.claims?.unclaimed.remove(claim.target)
        advance(at: now)
    }

    /// Ends the leases of phones whose claims this host no longer holds.
    ///
    /// - Parameters:
    ///   - lost: The targets of the claims.
    ///   - reason: The sentence that a later renewal gives as the reason.
    ///   - now: The current time.
    mutating func loseClaims(of lost: Set<LeaseTarget>, because reason: String, at now: Duration) {
        guard var claims else { return }
        let phones = lost.intersection(usedPhones)
        let numbers = entries.values.filter { !$0.isPending && !$0.targets.isDisjoint(with: phones) }.map(\.number)
        for target in lost { claims.held[target] = nil }
        claims.obsolete.subtract(lost)
        claims.unclaimed.subtract(lost)
        claimGeneration += 1
        // The claims are removed first, so that the next client needs a new one.
        self.claims = claims
        for number in numbers.sorted() {
            guard let lease = end(number, because: reason, at: now) else { continue }
            ended.addLost(lease, because: reason, at: now)
            addLapsed(lease, because: reason)
        }
    }

    /// Returns the ticket of the pending lease that needs the claim of a target; nil without one.
    func ticket(waitingForClaimOf target: LeaseTarget) -> UInt64? {
        let lease = owners[target].flatMap { entries[$0] }
        return lease.flatMap { $0.isPending ? $0.request.ticket : nil }
    }

    /// True if a request waits for claims only, and for no other client of this host.
    func waitsForClaim(_ ticket: UInt64) -> Bool {
        let lease = entries.values.first { $0.isPending && $0.request.ticket == ticket }
        return lease.map { lease in !isClaimed(lease) && !hasCalls(on: lease) { $0 != lease.holder.key } } ?? false
    }

    /// Returns the phone of a granted lease if this host has acquired its claim; nil otherwise.
    func claimedPhone(of lease: LeaseEntry) -> LeaseTarget? {
        lease.isPending ? nil : lease.targets.first { $0.device != nil && claims?.held[$0] != nil }
    }

    /// True if this host holds the claims of all phones that the lease covers, and without a team.
    func isClaimed(_ lease: LeaseEntry) -> Bool {
        guard let claims else { return true }
        return lease.targets.allSatisfy { $0.device == nil || claims.held[$0] != nil }
    }
}
