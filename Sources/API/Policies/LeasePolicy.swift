package import AccessControl
package import Model
package import Registry
import Tunnels

/// Refuses tunnels, and their new connections, to endpoints and phones that another client has leased. A connection that
/// exists when the lease begins stays open.
package struct LeasePolicy: Sendable {
    private let registry: EndpointRegistry
    private let leases: LeaseService
    private let isOnOtherHosts: @Sendable (UDID) -> Bool

    /// - Parameters:
    ///   - registry: The endpoints of this host.
    ///   - leases: The leases of this broker.
    ///   - isOnOtherHosts: Returns true for a phone that only other hosts of the team reach. Their brokers check each
    ///     connection.
    package init(
        registry: EndpointRegistry,
        leases: LeaseService,
        isOnOtherHosts: @escaping @Sendable (UDID) -> Bool = { _ in false }
    ) {
        self.registry = registry
        self.leases = leases
        self.isOnOtherHosts = isOnOtherHosts
    }

    /// Throws a problem if another client has the lease.
    package func authorize(_ target: TunnelTarget, for principal: Principal) async throws(Problem) {
        guard let conflict = await conflict(of: target, holderKey: principal.leaseHolder.key) else { return }
        throw conflict.known(to: principal).problem
    }

    private func conflict(of target: TunnelTarget, holderKey: String) async -> LeaseConflict? {
        // Without a lease, the registry is not asked.
        guard leases.mayHaveLeases, let target = await leaseTarget(of: target), isChecked(target) else { return nil }
        return leases.connectionConflict(on: target, holderKey: holderKey)
    }

    /// False for a phone that only other hosts reach.
    private func isChecked(_ target: LeaseTarget) -> Bool { !(target.device.map(isOnOtherHosts) ?? false) }

    /// The endpoint or phone that a lease of this broker can reserve; nil for an unknown endpoint, and for one of another
    /// host.
    private func leaseTarget(of target: TunnelTarget) async -> LeaseTarget? {
        switch target {
        case .device(let route): return .device(route.udid)
        case .endpoint(let id):
            return try? await LeaseTarget(registry.endpoint(id))
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
        return {
            guard leases.mayHaveLeases, isChecked(target),
                let conflict = leases.connectionConflict(on: target, holderKey: holderKey)
            else {
                return nil
            }
            let time = conflict.end == nil ? "after the end of the lease" : "after that time"
            return DialError(.leased, "a connection was refused: \(conflict); connect again \(time)")
        }
    }
}

extension LeaseConflict {
    /// The conflict as an HTTP problem.
    var problem: Problem { Problem(.leased, description, hint: "patchbay lease \(name) --wait 5m") }
}
