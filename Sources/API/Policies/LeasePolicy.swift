package import AccessControl
package import Model
package import Registry
import Tunnels

/// Refuses tunnels, and their new connections, to endpoints and phones that another client has leased. A connection that
/// exists when the lease begins stays open.
package struct LeasePolicy: Sendable {
    private let registry: EndpointRegistry
    private let leases: LeaseService

    package init(registry: EndpointRegistry, leases: LeaseService) {
        self.registry = registry
        self.leases = leases
    }

    /// Throws a problem if another client has the lease.
    package func authorize(_ target: TunnelTarget, for principal: Principal) async throws(Problem) {
        guard let conflict = await conflict(of: target, holderKey: principal.leaseHolder.key) else { return }
        throw conflict.problem
    }

    private func conflict(of target: TunnelTarget, holderKey: String) async -> LeaseConflict? {
        // Without a lease, the registry is not asked.
        guard leases.mayHaveLeases, let target = await leaseTarget(of: target) else { return nil }
        return leases.connectionConflict(on: target, holderKey: holderKey)
    }

    /// The endpoint or phone that a lease can reserve; nil for an unknown endpoint.
    private func leaseTarget(of target: TunnelTarget) async -> LeaseTarget? {
        switch target {
        case .device(let udid, _): .device(udid)
        case .endpoint(let id): (try? await registry.endpoint(id)).map { LeaseTarget($0) }
        }
    }
}

extension LeasePolicy: ConnectionPolicy {
    package func check(
        of target: TunnelTarget,
        for holder: String?,
        owner: UInt32
    ) async -> @Sendable () -> DialError? {
        guard let target = await leaseTarget(of: target) else { return { nil } }
        let holderKey = holder ?? LeaseHolder.key(ofUser: owner)
        return { [leases] in
            guard leases.mayHaveLeases, let conflict = leases.connectionConflict(on: target, holderKey: holderKey)
            else {
                return nil
            }
            return DialError(.leased, "a connection was refused: \(conflict); connect again after that time")
        }
    }
}

extension LeaseConflict {
    /// The conflict as an HTTP problem.
    var problem: Problem { Problem(.leased, description, hint: waitCommand) }

    /// The command that waits for the lease.
    var waitCommand: String { "patchbay lease \(name) --wait 5m" }
}
