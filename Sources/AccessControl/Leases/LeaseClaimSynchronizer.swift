import Model
import SystemIO

/// Keeps the registry of the team in step with the leases of this host: creates the claims that they need, and deletes
/// all others.
struct LeaseClaimSynchronizer: Sendable {
    let leases: LeaseService
    let claims: any LeaseClaims

    /// The pause after which a claim that could not be deleted is deleted again.
    private static let retryInterval = Duration.seconds(1)

    /// Synchronizes after each change of the leases and of the other hosts' claims, until the task is cancelled.
    func run() async {
        for await _ in leases.claimWakeUps.stream {
            while await !synchronize(), !Task.isCancelled {
                try? await leases.clock.sleep(for: Self.retryInterval)
            }
        }
    }

    /// Makes one change of each target at most.
    ///
    /// - Returns: False if a claim could not be deleted.
    private func synchronize() async -> Bool {
        let foreign = claims.foreignClaims
        endLeases(claimedBy: foreign)
        let (steps, generation) = leases.update { table, _ in (table.nextClaimSteps(), table.claims?.generation) }
        return await withTaskGroup(of: Bool.self) { group in
            for step in steps {
                group.addTask {
                    switch step {
                    case .acquire(let claim):
                        await acquire(claim, unless: foreign[claim.target], generation)
                        return true
                    case .release(let target): return await release(target, generation)
                    }
                }
            }
            return await group.reduce(true) { $0 && $1 }
        }
    }

    private func acquire(_ claim: LeaseClaim, unless foreign: TeamClaim?, _ generation: UInt64?) async {
        // The end of the other host's claim causes the next attempt.
        if let foreign { return leases.refuse(claim.target, LeaseClaimError.held(foreign)) }
        do { try await claims.acquire(claim) } catch {
            if case .held(let other) = error { endLeases(claimedBy: [claim.target: other]) }
            return leases.refuse(claim.target, error)
        }
        let isNeeded = leases.update { table, now in
            guard table.claims?.generation == generation else { return false }
            table.acquired(claim, at: now)
            return table.neededClaims[claim.target] != nil
        }
        if !isNeeded { leases.claimsChanged() }
    }

    private func release(_ target: LeaseTarget, _ generation: UInt64?) async -> Bool {
        do { try await claims.release(target) } catch { return false }
        leases.update { table, _ in
            if table.claims?.generation == generation { table.released(target) }
        }
        return true
    }

    /// Ends the leases of phones whose claims other hosts have replaced. A regular host does so only if the registry has
    /// deleted the claim of this host.
    private func endLeases(claimedBy foreign: [LeaseTarget: TeamClaim]) {
        let held = leases.update { table, _ in Set((table.claims?.held ?? [:]).keys) }
        for target in held where target.device != nil {
            guard let claim = foreign[target] else { continue }
            let reason = "the host \(claim.host) claimed the phone in the registry of the team"
            leases.update { table, now in table.loseClaims(of: [target], because: reason, at: now) }
        }
    }
}
