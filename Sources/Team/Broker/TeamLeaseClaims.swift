package import AccessControl
import FoundationEssentials
package import Model
import ServiceLifecycle
import Synchronization

/// The claims of the team's registry, as the leases of this broker use them.
package final class TeamLeaseClaims: LeaseClaims {
    private struct State {
        var foreign: [LeaseTarget: TeamClaim] = [:]
        var handles: [LeaseTarget: TeamClaims.Handle] = [:]
    }

    private let host: HostName
    private let claims: TeamClaims
    private let state = Mutex(State())

    init(_ claims: TeamClaims, of host: HostName) { (self.claims, self.host) = (claims, host) }

    package var foreignClaims: [LeaseTarget: TeamClaim] { state.withLock(\.foreign) }

    /// Sets the claim of a target, of any host; nil removes it.
    ///
    /// - Returns: False if the claims of the other hosts have not changed.
    func set(_ claim: TeamClaim?, of target: LeaseTarget) -> Bool {
        let foreign = claim?.host == host ? nil : claim
        return state.withLock { state in
            guard state.foreign[target] != foreign else { return false }
            state.foreign[target] = foreign
            return true
        }
    }

    package func isHeld(_ target: LeaseTarget) -> Bool {
        state.withLock { $0.handles[target] }.map(claims.isHeld) ?? false
    }

    package func acquire(_ claim: LeaseClaim) async throws(LeaseClaimError) {
        let entry = TeamClaim(
            host: host,
            endpoint: claim.endpoint.on(host),
            device: claim.device,
            holder: claim.holder.name,
            holderKey: claim.holder.key,
            lease: claim.lease,
            seconds: claim.seconds,
            note: claim.note,
            createdAt: Date()
        )
        do {
            if let handle = state.withLock({ $0.handles[claim.target] }), claims.isHeld(handle),
                try await replace(handle, with: entry)
            {
                return
            }
            let handle = try await claims.acquire(claim.target, as: entry)
            state.withLock { $0.handles[claim.target] = handle }
        } catch .claimed(_, by: let other) {
            throw .held(other)
        } catch .noSession(let reason) {
            throw .unreachable(reason: reason)
        } catch {
            throw .unreachable(reason: error.description)
        }
    }

    /// Replaces the content of a claim.
    ///
    /// - Returns: False if another host has deleted or replaced the claim, which ends here too.
    private func replace(_ handle: TeamClaims.Handle, with entry: TeamClaim) async throws(TeamError) -> Bool {
        do {
            try await claims.replace(handle, with: entry)
            return true
        } catch {
            guard case .store = error else { throw error }
            claims.release(handle)
            return false
        }
    }

    /// Deletes a claim in the name of this host, unless this host holds it.
    func check(_ target: LeaseTarget, _ claim: TeamClaim) {
        if claim.host == host { claims.check(target) }
    }

    package func release(_ target: LeaseTarget) {
        guard let handle = state.withLock({ $0.handles.removeValue(forKey: target) }) else { return }
        claims.release(handle)
    }
}

/// Ends the leases whose claims the registry may have deleted.
struct LostClaimForwarder: Service {
    let claims: TeamClaims
    let leases: LeaseService

    func run() async throws {
        for await handle in claims.ends.cancelOnGracefulShutdown() {
            leases.endClaimed([handle.target.onItsHost], because: LeaseConflict.lostRegistry)
            claims.check(handle.target)
        }
    }
}

extension LeaseTarget {
    /// The target without the host of an endpoint, as the broker of that host names it.
    fileprivate var onItsHost: LeaseTarget {
        if case .endpoint(let id) = self { .endpoint(id.onItsHost) } else { self }
    }
}
