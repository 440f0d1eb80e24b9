import Model
import SystemIO

/// Creates the claims that the leases of this host need in the registry of the team, and deletes its other claims.
struct LeaseClaimSynchronizer: Sendable {
    let leases: LeaseService
    let claims: any LeaseClaims

    /// Makes one change of each target at most. Called after each change of the leases and of the other hosts' claims.
    func synchronize() async {
        let foreign = claims.foreignClaims
        endLeases(claimedBy: foreign)
        let (steps, generation) = leases.update { table, _ in (table.nextClaimSteps(), table.claimGeneration) }
        await withDiscardingTaskGroup { group in
            for step in steps {
                switch step {
                case .acquire(let claim):
                    group.addTask { await acquire(claim, unless: foreign[claim.target], generation) }
                case .release(let target): claims.release(target)
                }
            }
        }
    }

    private func acquire(_ claim: LeaseClaim, unless foreign: TeamClaim?, _ generation: UInt64) async {
        // The end of the other host's claim causes the next attempt.
        if let foreign { return leases.refuse(claim.target, LeaseClaimError.held(foreign)) }
        do { try await claims.acquire(claim) } catch {
            if case .held(let other) = error {
                endLeases(claimedBy: [claim.target: other])
            } else if !claims.isHeld(claim.target) {
                endLease(without: claim.target)
            }
            return leases.refuse(claim.target, error)
        }
        let isDone = leases.update { table, now in
            table.acquired(claim, since: generation, at: now)
            return table.claims?.held[claim.target] != nil && table.neededClaims[claim.target] != nil
        }
        if !isDone { leases.claimsChanged() }
    }

    /// Ends the lease of a phone whose claim was lost and could not be created again.
    private func endLease(without target: LeaseTarget) {
        leases.update { table, now in
            guard table.claims?.held[target] != nil else { return }
            table.loseClaims(of: [target], because: LeaseConflict.lostRegistry, at: now)
        }
    }

    /// Ends the leases of phones whose claims other hosts have replaced. A regular host does so only if the team
    /// registry has deleted the claim of this host.
    private func endLeases(claimedBy foreign: [LeaseTarget: TeamClaim]) {
        let held = leases.update { table, _ in table.usedPhones }
        for target in held {
            guard let claim = foreign[target] else { continue }
            let reason = "the host \(claim.host) claimed the phone in the registry of the team"
            leases.update { table, now in table.loseClaims(of: [target], because: reason, at: now) }
        }
    }
}
