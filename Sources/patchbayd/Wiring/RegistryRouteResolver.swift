import AccessControl
import DebugLink
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
            guard let devices else { throw CompositeDialer.devicesDisabled }
            // The dial uses the same list of devices.
            try await devices.checkReachable(udid)
            return ResolvedTarget([.usb(USBRoute(udid: udid, port: port))])
        case .endpoint(let id):
            guard let endpoint = try? await registry.endpoint(id) else {
                throw DialError(.noRoute, "no endpoint is called \(id); `patchbay list` shows them all")
            }
            if let refusal = endpoint.tunnelRefusal {
                throw DialError(.noRoute, "\(refusal); `patchbay debug \(id)` shows its states")
            }
            guard !endpoint.routes.isEmpty, endpoint.state != .offline else {
                throw DialError(.noRoute, "\(id) is offline; the tunnel works again as soon as it is back")
            }
            // The requested ID may be an alias; approvals use the current ID.
            let approval = accessStore.approvals.trust(of: endpoint.id).approval
            let approved = ApprovalPolicy.approvedRoutes(of: endpoint, approval).map(\.route)
            guard approved.isEmpty else {
                return ResolvedTarget(approved) { [accessStore] in
                    accessStore.approvals.trust(of: endpoint.id).approval == approval
                }
            }
            if let refusal = ApprovalPolicy.refusal(of: endpoint, approval) {
                throw DialError(.forbidden, "\(refusal.detail): \(refusal.hint)")
            }
            throw DialError(.noRoute, "\(id) is offline; the tunnel works again as soon as it is back")
        }
    }
}

/// Dials a route with the dialer for its transport.
struct CompositeDialer: Dialer {
    let network: any Dialer
    /// Nil if devices are disabled in the configuration.
    let usb: (any Dialer)?
    /// Nil if the state debugger is disabled in the configuration.
    let debugTools: DebugToolServer?
    let uses = RouteUseCounter()

    static let devicesDisabled = DialError(
        .usbmuxdAbsent,
        "devices are disabled; set devices.enabled = true in the configuration"
    )

    static let debugLinkDisabled = DialError(
        .noRoute,
        "the state debugger is disabled; set debuglink.enabled = true in the configuration"
    )

    func dial(_ route: Route) async throws -> Connection {
        switch route {
        case .network(let inbound) where inbound.isInbound:
            guard let debugTools else { throw Self.debugLinkDisabled }
            return try await debugTools.dial(inbound)
        case .network:
            // Counted after the dial: attempts to reach a dead host must not stop the probes that detect it.
            return try await network.dial(route).retaining(uses.begin(route))
        case .usb:
            guard let usb else { throw Self.devicesDisabled }
            // The port is in use from the beginning of the dial, so that it is not probed at the same time.
            let use = uses.begin(route)
            return try await usb.dial(route).retaining(use)
        }
    }

    func plan(for route: Route) async -> ConnectPlan? {
        switch route {
        case .network(let inbound) where inbound.isInbound:
            return nil
        case .network:
            var plan = await network.plan(for: route)
            plan?.retained = { [uses] in uses.begin(route) }
            return plan
        case .usb:
            guard var plan = await usb?.plan(for: route) else { return nil }
            let acquire = plan.acquirePermit
            plan.acquirePermit = { [uses] in
                let use = uses.begin(route)
                guard let acquire else { return use }
                return acquire().map { [$0, use] as [any Sendable] }
            }
            return plan
        }
    }
}
