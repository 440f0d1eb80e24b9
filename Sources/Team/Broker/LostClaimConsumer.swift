import AccessControl
import ServiceLifecycle

/// Ends the leases whose claims the team registry may have deleted.
struct LostClaimConsumer: Service {
    let claims: TeamClaims
    let leases: LeaseService

    func run() async throws {
        await withDiscardingTaskGroup { group in
            group.addTask {
                // A claim that could not be acquired without a session lease may be acquired now.
                for await case .held in claims.sessionStates.cancelOnGracefulShutdown() { leases.claimsChanged() }
            }
            for await targets in claims.ends.cancelOnGracefulShutdown() {
                leases.endClaimed(targets, because: LeaseConflict.lostRegistry)
                // The team registry has the entries until the end of its lease. They are deleted only after the leases
                // here.
                for target in targets { claims.check(target) }
            }
        }
    }
}
