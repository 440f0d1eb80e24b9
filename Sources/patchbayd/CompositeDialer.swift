import Model
import SystemIO

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
