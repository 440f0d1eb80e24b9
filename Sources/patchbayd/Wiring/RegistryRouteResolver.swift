import AccessControl
import Apps
import Devices
import Model
import Registry
import SystemIO
import Tunnels

/// Resolves a tunnel's target: an endpoint to its approved routes in the registry, a device port to its USB route.
struct RegistryRouteResolver: RouteResolver {
    let registry: EndpointRegistry
    /// Nil if devices are disabled in the configuration.
    let devices: DeviceMonitor?
    let accessStore: AccessStore

    func resolve(_ target: TunnelTarget) async throws(DialError) -> ResolvedTarget {
        switch target {
        case .device(let udid, let port):
            guard let devices else { throw CompositePlanner.devicesDisabled }
            // The dial uses the same list of devices.
            try await devices.handle(of: udid)
            return ResolvedTarget([.usb(USBRoute(udid: udid, port: port))])
        case .endpoint(let id):
            let endpoint: Endpoint
            do { endpoint = try await registry.endpoint(id) } catch {
                throw DialError(.noRoute, error.description)
            }
            if let refusal = endpoint.tunnelRefusal {
                throw DialError(.noRoute, "\(refusal); `patchbay debug \(id)` shows its states")
            }
            // The requested ID may be an alias; approvals use the current ID.
            let approval = accessStore.approvals.trust(of: endpoint.id).approval
            // An offline endpoint is refused too, so that its open connections are closed.
            if let refusal = ApprovalPolicy.refusal(of: endpoint, approval) {
                throw DialError(.forbidden, "\(refusal.detail): \(refusal.hint)")
            }
            guard !endpoint.routes.isEmpty, endpoint.state != .offline else {
                throw DialError(.noRoute, "\(id) is offline; the tunnel works again as soon as it is back")
            }
            let approved = ApprovalPolicy.approvedRoutes(of: endpoint, approval).map(\.route)
            let refused = endpoint.routes.map(\.route).filter { !approved.contains(where: $0.hasSameAddress) }
            return ResolvedTarget(approved, refused: refused) { [accessStore] in
                accessStore.approvals.trust(of: endpoint.id).approval == approval
            }
        }
    }
}

/// Plans a stream to a route with the planner for its transport.
struct CompositePlanner: ConnectPlanner {
    let network: any ConnectPlanner
    /// Nil if devices are disabled in the configuration.
    let usb: (any ConnectPlanner)?
    /// Nil if the state debugger is disabled in the configuration.
    let debugTools: DebugToolServer?
    let uses = RouteUseCounter()

    /// A planner whose connections are not counted.
    var uncounted: CompositePlanner { CompositePlanner(network: network, usb: usb, debugTools: debugTools) }

    static let devicesDisabled = DialError(
        .usbmuxdAbsent,
        "devices are disabled; set devices.enabled = true in the configuration"
    )

    static let debugLinkDisabled = DialError(
        .noRoute,
        "the state debugger is disabled; set debuglink.enabled = true in the configuration"
    )

    func plan(for route: Route) async throws(DialError) -> ConnectPlan {
        switch route {
        case .network(let inbound) where inbound.isInbound:
            guard let debugTools else { throw Self.debugLinkDisabled }
            return ConnectPlan(route: route) { try await debugTools.dial(inbound) }
        case .network:
            // Counted after the connect: attempts to reach a dead host must not stop the probes that detect it.
            return try await network.plan(for: route).with(retained: { [uses] in uses.begin(route) })
        case .usb:
            guard let usb else { throw Self.devicesDisabled }
            return counted(try await usb.plan(for: route), route)
        }
    }

    /// The port is in use from the beginning of the connect, so that it is not probed at the same time.
    private func counted(_ plan: ConnectPlan, _ route: Route) -> ConnectPlan {
        let acquire = plan.acquirePermit
        return plan.with(acquirePermit: { [uses] in
            guard let acquire else { return uses.begin(route) }
            return acquire().map { uses.begin(route, holding: $0) }
        })
    }
}
