import AccessControl
import DebugLink
import Devices
import Model
import Registry
import Synchronization
import SystemIO
import Tunnels

/// Resolves a tunnel's target: an endpoint to its approved routes in the registry, a device port to its USB route.
struct RegistryRouteResolver: RouteResolver {
    let registry: EndpointRegistry
    /// Nil if devices are disabled in the configuration.
    let devices: DeviceMonitor?
    let accessStore: AccessStore

    func routes(to target: TunnelTarget) async throws(DialError) -> [Route] {
        switch target {
        case .device(let udid, let port):
            guard let devices else { throw CompositeDialer.devicesDisabled }
            // The dial uses the same list of devices.
            try await devices.checkReachable(udid)
            return [.usb(USBRoute(udid: udid, port: port))]
        case .endpoint(let id):
            guard let endpoint = try? await registry.endpoint(id) else {
                throw DialError(.noRoute, "no endpoint is called \(id); `patchbay list` shows them all")
            }
            guard !endpoint.routes.isEmpty, endpoint.state != .offline else {
                throw DialError(.noRoute, "\(id) is offline; the tunnel works again as soon as it is back")
            }
            // The requested ID may be an alias; approvals use the current ID.
            let approval = accessStore.approvals.trust(of: endpoint.id).approval
            let approved = ApprovalPolicy.approvedRoutes(of: endpoint, approval).map(\.route)
            let dialled = approved.filter { !$0.isInbound }
            guard dialled.isEmpty else { return dialled }
            guard approved.isEmpty else {
                throw DialError(
                    .noRoute,
                    "\(id) connected to Patchbay, and a tunnel cannot lead to it; `patchbay debug \(id)` shows its states"
                )
            }
            if let refusal = ApprovalPolicy.refusal(of: endpoint, approval) {
                throw DialError(.forbidden, refusal.detail)
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
    let uses = DevicePortUseCounter()

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
        case .network: return try await network.dial(route)
        case .usb(let port):
            guard let usb else { throw Self.devicesDisabled }
            // The port is in use from the beginning of the dial, so that it is not probed at the same time.
            let use = uses.begin(port)
            return try await usb.dial(route).retaining(use)
        }
    }
}

/// Counts the open streams per device port.
final class DevicePortUseCounter: Sendable {
    private let counts = Mutex<[USBRoute: Int]>([:])

    /// One open stream; counted until deallocation.
    private final class Use: Sendable {
        private let route: USBRoute
        private let uses: DevicePortUseCounter

        init(_ route: USBRoute, _ uses: DevicePortUseCounter) {
            (self.route, self.uses) = (route, uses)
            uses.counts.withLock { $0[route, default: 0] += 1 }
        }

        deinit {
            uses.counts.withLock { counts in
                let left = counts[route, default: 1] - 1
                counts[route] = left > 0 ? left : nil
            }
        }
    }

    /// True if the route is a device port with an open stream.
    func contains(_ route: Route) -> Bool {
        guard case .usb(let port) = route else { return false }
        return counts.withLock { $0[port] != nil }
    }

    /// Counts a stream until the returned value is deallocated.
    func begin(_ route: USBRoute) -> any Sendable { Use(route, self) }
}
