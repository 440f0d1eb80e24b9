import AccessControl
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
            let approved = ApprovalPolicy.approvedRoutes(of: endpoint, approval)
            guard approved.isEmpty else { return approved.map(\.route) }
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
    let uses = RouteUses()

    static let devicesDisabled = DialError(
        .usbmuxdAbsent,
        "devices are disabled; set devices.enabled = true in the configuration"
    )

    func dial(_ route: Route) async throws -> Connection {
        switch route {
        case .network: return try await network.dial(route)
        case .usb(let port):
            guard let usb else { throw Self.devicesDisabled }
            return try await usb.dial(route).retaining(uses.begin(port))
        }
    }
}

/// Counts the open streams per device port.
final class RouteUses: Sendable {
    private let counts = Mutex<[USBRoute: Int]>([:])

    /// One open stream; counted until deallocation.
    private final class Use: Sendable {
        private let route: USBRoute
        private let uses: RouteUses

        init(_ route: USBRoute, _ uses: RouteUses) {
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

    /// True if a stream to the port is open.
    func contains(_ route: USBRoute) -> Bool { counts.withLock { $0[route] != nil } }

    /// Counts a stream until the returned value is deallocated.
    func begin(_ route: USBRoute) -> any Sendable { Use(route, self) }
}
