/// The port that a route leads to. Two routes to one port may differ in their interface and host name.
package enum RoutePort: Hashable, Sendable {
    case network(address: String, port: UInt16)
    case usb(USBRoute)

    package init(_ route: Route) {
        switch route {
        case .network(let network): self = .network(address: network.address, port: network.port)
        case .usb(let usb): self = .usb(usb)
        }
    }

    /// The port number.
    package var number: UInt16 {
        switch self {
        case .network(_, let port): port
        case .usb(let usb): usb.port
        }
    }
}
