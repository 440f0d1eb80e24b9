/// A way to reach an endpoint.
package enum Route: Hashable, Sendable {
    case network(NetworkRoute)
    case usb(USBRoute)
}

/// A network route: an address and a port. A link-local address also needs its interface.
package struct NetworkRoute: Hashable, Sendable, Codable {
    /// A numeric IPv4 or IPv6 address without scope.
    package let address: String
    package let port: UInt16
    /// The name of the interface, for example `wlan0`. Nil for a configured endpoint without an interface.
    package let interface: String?
    /// The kernel's index of the interface, required as the scope of `fe80::` addresses. 0 if there is none.
    package let interfaceIndex: UInt32
    /// The machine that announced the address (the SRV target), or the address of an app that connected to Patchbay. Nil
    /// for a configured address and for the address of a registration.
    package let machine: SanitizedText?
    /// True for the connection of an app that connected to Patchbay. Its port is the app's own, and is never dialled.
    package var isInbound: Bool { inbound == true }
    /// Nil instead of false, so that only inbound routes encode it.
    private let inbound: Bool?
    /// The ID of the registration in which an app named this port, from this address. Nil for every other route.
    package let registration: String?

    /// The key `host` is older than the word machine, which leaves the word host to teams.
    private enum CodingKeys: String, CodingKey {
        case address, port, interface, interfaceIndex
        case machine = "host"
        case inbound, registration
    }

    package init(
        address: String,
        port: UInt16,
        interface: String? = nil,
        interfaceIndex: UInt32 = 0,
        machine: SanitizedText? = nil,
        isInbound: Bool = false,
        registration: String? = nil
    ) {
        self.address = address
        self.port = port
        self.interface = interface
        self.interfaceIndex = interfaceIndex
        self.machine = machine
        inbound = isInbound ? true : nil
        self.registration = registration
    }
}

extension NetworkRoute {
    /// The address with its interface, without the port: `192.168.1.20%wlan0`.
    package var location: String { Approval.Address(self).location }
}

/// A USB route: a socket on a phone.
package struct USBRoute: Hashable, Sendable {
    package let udid: UDID
    package let socket: DeviceSocket

    package init(udid: UDID, socket: DeviceSocket) {
        self.udid = udid
        self.socket = socket
    }

    package init(udid: UDID, port: UInt16) { self.init(udid: udid, socket: .port(port)) }

    /// The TCP port; 0 for an abstract socket.
    package var port: UInt16 { socket.port ?? 0 }
}

/// Encodes as `{"udid": …, "port": …}` or `{"udid": …, "abstractSocket": …}`.
extension USBRoute: Codable {
    private enum Keys: String, CodingKey { case udid, port, abstractSocket }

    package init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Keys.self)
        udid = try container.decode(UDID.self, forKey: .udid)
        if let name = try container.decodeIfPresent(AbstractSocketName.self, forKey: .abstractSocket) {
            socket = .abstract(name)
        } else {
            socket = .port(try container.decode(UInt16.self, forKey: .port))
        }
    }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Keys.self)
        try container.encode(udid, forKey: .udid)
        switch socket {
        case .port(let port): try container.encode(port, forKey: .port)
        case .abstract(let name): try container.encode(name, forKey: .abstractSocket)
        }
    }
}

extension Route {
    /// True for a network route.
    package var isNetwork: Bool {
        if case .network = self { true } else { false }
    }

    /// True for the connection of an app that connected to Patchbay. Such a route is never dialled.
    package var isInbound: Bool {
        if case .network(let network) = self { network.isInbound } else { false }
    }

    /// True if both routes lead to the same address and port over the network.
    package func hasSameAddress(as other: Route) -> Bool {
        guard case .network(let one) = self, case .network(let two) = other else { return false }
        return one.address == two.address && one.port == two.port
    }

    /// The ID of the registration that names the route. Nil for every other route.
    package var registration: String? {
        if case .network(let network) = self { network.registration } else { nil }
    }

    /// The machine that announced the address by mDNS. Nil for USB routes, configured addresses and registrations.
    package var machine: SanitizedText? {
        if case .network(let network) = self { network.machine } else { nil }
    }

    /// The address with its interface (`192.168.1.20%wlan0`), or the UDID of the phone.
    package var location: String {
        switch self {
        case .network(let network): network.location
        case .usb(let usb): "\(usb.udid)"
        }
    }

    /// True for a network route to a loopback address of this host.
    package var isLoopback: Bool { address.map { $0.hasPrefix("127.") || $0 == "::1" } ?? false }

    /// The network address. Nil for USB routes.
    package var address: String? {
        if case .network(let network) = self { network.address } else { nil }
    }

    package var port: UInt16 {
        switch self {
        case .network(let route): route.port
        case .usb(let route): route.port
        }
    }
}

/// The display form: `192.168.1.20:8080`, `[fe80::1%wlan0]:8080`, `usb:UDID:8080`.
extension Route: CustomStringConvertible {
    package var description: String {
        switch self {
        case .network(let route):
            guard route.address.contains(":") else { return "\(route.address):\(route.port)" }
            let scope = route.address.lowercased().hasPrefix("fe80") ? route.interface.map { "%\($0)" } ?? "" : ""
            return "[\(route.address)\(scope)]:\(route.port)"
        case .usb(let route):
            return "usb:\(route.udid):\(route.socket)"
        }
    }
}

extension Route: Codable {
    private enum Keys: String, CodingKey { case via }
    private enum Via: String, Codable { case network, usb }

    package init(from decoder: any Decoder) throws {
        switch try decoder.container(keyedBy: Keys.self).decode(Via.self, forKey: .via) {
        case .network: self = .network(try NetworkRoute(from: decoder))
        case .usb: self = .usb(try USBRoute(from: decoder))
        }
    }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Keys.self)
        switch self {
        case .network(let route):
            try container.encode(Via.network, forKey: .via)
            try route.encode(to: encoder)
        case .usb(let route):
            try container.encode(Via.usb, forKey: .via)
            try route.encode(to: encoder)
        }
    }
}

/// A route of an endpoint, with the facts that its source reports and with its approval state.
///
/// Approval belongs to the route and not to the endpoint. An approved USB route says nothing about a network address.
package struct EndpointRoute: Hashable, Sendable {
    package let route: Route
    /// The app as the route's source reports it. Empty if the source does not know the app.
    package let app: SanitizedText
    /// True if `app` is a bundle identifier. Otherwise `app` is a display name.
    package let appIsBundleID: Bool
    /// The ID of the app's launch, as the route's source reports it.
    package let launchID: SanitizedText?
    /// The approval state of the route, computed by `ApprovalPolicy`.
    package var approval: Endpoint.Approval
    /// True if a secret is stored for this route and this launch.
    package var isSecretHeld = false
    /// The app that responded on this route instead of `app`. Nil if there was no mismatch.
    package var mismatch: SanitizedText?

    package init(
        _ route: Route,
        app: SanitizedText = SanitizedText(""),
        appIsBundleID: Bool = false,
        launchID: SanitizedText? = nil,
        approval: Endpoint.Approval,
        mismatch: SanitizedText? = nil
    ) {
        self.route = route
        self.app = app
        self.appIsBundleID = appIsBundleID
        self.launchID = launchID
        self.approval = approval
        self.mismatch = mismatch
    }

    /// A copy with the ID of another launch.
    package func with(launchID: SanitizedText?) -> EndpointRoute {
        EndpointRoute(
            route,
            app: app,
            appIsBundleID: appIsBundleID,
            launchID: launchID,
            approval: approval,
            mismatch: mismatch
        )
    }

    package var port: UInt16 { route.port }
    package var isApproved: Bool { approval == .approved }

    /// The launch to which a secret is bound: the reported launch ID, else the port.
    package var launch: String { launchID.map { "launch \($0)" } ?? Self.launch(atPort: port) }

    package static func launch(atPort port: UInt16) -> String { "port \(port)" }
}

extension EndpointRoute: CustomStringConvertible {
    package var description: String { route.description }
}

/// Encodes the members of the route with `app`, `appIsBundleID`, `launchID`, `approval`, `secretHeld` and `mismatch`
/// beside them.
extension EndpointRoute: Codable {
    private enum Keys: String, CodingKey {
        case app, appIsBundleID, launchID, approval, mismatch, isSecretHeld = "secretHeld"
    }

    package init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Keys.self)
        route = try Route(from: decoder)
        app = try container.decodeIfPresent(SanitizedText.self, forKey: .app) ?? SanitizedText("")
        appIsBundleID = try container.decodeIfPresent(Bool.self, forKey: .appIsBundleID) ?? false
        launchID = try container.decodeIfPresent(SanitizedText.self, forKey: .launchID)
        approval = try container.decode(Endpoint.Approval.self, forKey: .approval)
        mismatch = try container.decodeIfPresent(SanitizedText.self, forKey: .mismatch)
        isSecretHeld = try container.decodeIfPresent(Bool.self, forKey: .isSecretHeld) ?? false
    }

    package func encode(to encoder: any Encoder) throws {
        try route.encode(to: encoder)
        var container = encoder.container(keyedBy: Keys.self)
        if !app.isEmpty { try container.encode(app, forKey: .app) }
        if appIsBundleID { try container.encode(true, forKey: .appIsBundleID) }
        try container.encodeIfPresent(launchID, forKey: .launchID)
        try container.encode(approval, forKey: .approval)
        try container.encodeIfPresent(mismatch, forKey: .mismatch)
        if isSecretHeld { try container.encode(true, forKey: .isSecretHeld) }
    }
}

extension Route {
    /// The address and port in a URL, as `127.0.0.1:8181` or `[::1]:8181`; nil for a port of a phone, which needs a tunnel.
    package var networkAuthority: String? {
        guard case .network = self else { return nil }
        // In a URL, the percent sign before an interface is written as %25 (RFC 6874, section 2).
        return description.split(separator: "%", omittingEmptySubsequences: false).joined(separator: "%25")
    }
}
