package import AccessControl
package import Model
package import Registry
import SystemIO
package import Tunnels

/// Resolves a tunnel's target: an endpoint to its approved routes in the registry, a device port to its USB route.
package struct ApprovedRouteResolver: RouteResolver {
    /// Throws unless a phone is attached.
    package typealias DeviceCheck = @Sendable (UDID) async throws(DialError) -> Void

    let registry: EndpointRegistry
    let accessStore: AccessStore
    private let requireDevice: DeviceCheck?

    /// - Parameters:
    ///   - registry: The registry.
    ///   - accessStore: Has the approvals.
    ///   - requireDevice: Checks that a phone is attached; nil if devices are disabled in the configuration.
    package init(registry: EndpointRegistry, accessStore: AccessStore, requireDevice: DeviceCheck?) {
        (self.registry, self.accessStore, self.requireDevice) = (registry, accessStore, requireDevice)
    }

    package func resolve(_ target: TunnelTarget) async throws(DialError) -> ResolvedTarget {
        switch target {
        case .device(let route):
            guard let requireDevice else { throw TransportPlanner.devicesDisabled }
            // The dial uses the same list of devices.
            try await requireDevice(route.udid)
            return ResolvedTarget(
                [.usb(route)],
                allowsTrial: { [registry] in
                    let known = await registry.endpoints.filter { endpoint in
                        endpoint.routes.contains { $0.route == .usb(route) }
                    }
                    // Behind an unknown port may be a debugger's server, which ends with its first client.
                    return !known.isEmpty && known.allSatisfy(\.kind.acceptsManyClients)
                }
            )
        case .endpoint(let id):
            let endpoint: Endpoint
            do { endpoint = try await registry.endpoint(id) } catch {
                throw DialError(.noRoute, error.description)
            }
            if let refusal = endpoint.tunnelRefusal {
                throw DialError(.noRoute, "\(refusal); `patchbay debug \(id)` shows its states")
            }
            // The requested ID may be an alias; approvals use the current ID.
            let trust = accessStore.approvals.trust(of: endpoint.id)
            // An offline endpoint is refused too, so that its open connections are closed.
            if let refusal = ApprovalPolicy.refusal(of: endpoint, trust) {
                throw DialError(.forbidden, "\(refusal.detail): \(refusal.hint)")
            }
            let reason = endpoint.reason.map { " (\($0))" } ?? ""
            let absent = DialError(.noRoute, "\(id) is offline\(reason); the tunnel works again as soon as it is back")
            if endpoint.routes.isEmpty { throw absent }
            let approved = ApprovalPolicy.approvedRoutes(of: endpoint, trust.approval).map(\.route)
            let refused = endpoint.routes.map(\.route).filter { !approved.contains(where: $0.hasSameAddress) }
            return ResolvedTarget(
                approved,
                refused: refused,
                isCurrent: { [accessStore] in
                    accessStore.approvals.trust(of: endpoint.id).approval == trust.approval
                },
                allowsTrial: { endpoint.kind.acceptsManyClients },
                absence: endpoint.state != .offline
                    ? nil : TargetAbsence(absent) { [registry] in await registry.report(nil, of: endpoint.id) }
            )
        }
    }
}
