import AccessControl
import FoundationEssentials
import Model
import ServiceLifecycle
import Synchronization
import Team

/// The claims of the team's registry, as the leases of this broker use them.
final class TeamLeaseClaims: LeaseClaims {
    private struct State {
        var foreign: [LeaseTarget: TeamClaim] = [:]
        var handles: [LeaseTarget: TeamClaims.Handle] = [:]
    }

    private let host: HostName
    private let claims: TeamClaims
    private let state = Mutex(State())

    init(_ claims: TeamClaims, of host: HostName) { (self.claims, self.host) = (claims, host) }

    var foreignClaims: [LeaseTarget: TeamClaim] { state.withLock(\.foreign) }

    /// Sets the claims of all hosts.
    ///
    /// - Returns: False if those of the other hosts have not changed.
    func set(_ claims: [TeamClaimTarget: TeamClaim]) -> Bool {
        var foreign: [LeaseTarget: TeamClaim] = [:]
        for (target, claim) in claims where claim.host != host { foreign[LeaseTarget(target)] = claim }
        return state.withLock { state in
            defer { state.foreign = foreign }
            return state.foreign != foreign
        }
    }

    func acquire(_ claim: LeaseClaim) async throws(LeaseClaimError) {
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
            if let handle = state.withLock({ $0.handles[claim.target] }), claims.isHeld(handle) {
                return try await claims.replace(handle, with: entry)
            }
            let handle = try await claims.acquire(TeamClaimTarget(claim.target), as: entry)
            state.withLock { $0.handles[claim.target] = handle }
        } catch .claimed(_, by: let other) {
            throw .held(other)
        } catch .noSession(let reason) {
            throw .unreachable(reason: reason)
        } catch {
            throw .unreachable(reason: error.description)
        }
    }

    func release(_ target: LeaseTarget) async throws(LeaseClaimError) {
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
            leases.endClaimed(
                [LeaseTarget(handle.target).onItsHost],
                because: "the host lost its connection to the registry of the team"
            )
        }
    }
}

extension LeaseTarget {
    fileprivate init(_ target: TeamClaimTarget) {
        self =
            switch target {
            case .device(let udid): .device(udid)
            case .endpoint(let id): .endpoint(id)
            }
    }

    /// The target without the host of an endpoint, as the broker of that host names it.
    fileprivate var onItsHost: LeaseTarget {
        if case .endpoint(let id) = self { .endpoint(id.onItsHost) } else { self }
    }
}

extension TeamClaimTarget {
    fileprivate init(_ target: LeaseTarget) {
        self =
            switch target {
            case .device(let udid): .device(udid)
            case .endpoint(let id): .endpoint(id)
            }
    }
}
