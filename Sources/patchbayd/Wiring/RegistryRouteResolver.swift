import AccessControl
import Devices
import Model
import Registry
import Synchronization
import SystemIO
import Tunnels

/// Says where a tunnel's target is now: an endpoint by the registry, as far as somebody said yes to it, a phone's port by
/// itself.
struct RegistryRouteResolver: RouteResolver {
    let registry: EndpointRegistry
    /// Nil when devices are turned off in the configuration.
    let devices: DeviceMonitor?
    let pairing: AccessStore

    func routes(to target: TunnelTarget) async throws(DialError) -> [Route] {
        switch target {
        case .device(let udid, let port):
            guard let devices else { throw CompositeDialer.phonesAreOff }
            // Asked where the dial asks, so that a phone that is there for the one is there for the other.
            try await devices.find(udid)
            return [.usb(USBRoute(udid: udid, port: port))]
        case .endpoint(let id):
            guard let endpoint = try? await registry.endpoint(id) else {
                throw DialError(.noRoute, "no endpoint is called \(id); `patchbay list` shows them all")
            }
            guard !endpoint.routes.isEmpty, endpoint.state != .offline else {
                throw DialError(.noRoute, "\(id) is offline; the tunnel works again as soon as it is back")
            }
            // Not of the id that was asked for: it may be a former one.
            let approval = await pairing.approval(of: endpoint.id)
            let approved = ApprovalPolicy.approvedRoutes(of: endpoint, approval)
            guard approved.isEmpty else { return approved.map(\.route) }
            if let refusal = ApprovalPolicy.refusal(of: endpoint, approval) {
                throw DialError(.forbidden, refusal.detail)
            }
            throw DialError(.noRoute, "\(id) is offline; the tunnel works again as soon as it is back")
        }
    }
}

/// Reaches a route by whatever reaches its kind.
struct CompositeDialer: Dialer {
    let lan: any Dialer
    /// Nil when devices are turned off in the configuration.
    let usb: (any Dialer)?
    let uses = RouteUses()

    static let phonesAreOff = DialError(
        .usbmuxdAbsent,
        "phones are turned off; set devices.enabled = true in the configuration"
    )

    func dial(_ route: Route) async throws -> Connection {
        switch route {
        case .lan: return try await lan.dial(route)
        case .usb(let port):
            guard let usb else { throw Self.phonesAreOff }
            return try await usb.dial(route).holding(uses.begin(port))
        }
    }
}

/// Which ports of phones streams stand to.
final class RouteUses: Sendable {
    private let counts = Mutex<[USBRoute: Int]>([:])

    /// One stream, until the last reference goes.
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

    func contains(_ route: USBRoute) -> Bool { counts.withLock { $0[route] != nil } }

    func begin(_ route: USBRoute) -> any Sendable { Use(route, self) }
}
