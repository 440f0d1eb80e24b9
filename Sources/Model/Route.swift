/// A way to reach an endpoint.
package enum Route: Hashable, Sendable {
    case lan(LANRoute)
    case usb(USBRoute)
}

/// Through the network: an address, a port, and for link-local addresses the interface they are valid on.
package struct LANRoute: Hashable, Sendable, Codable {
    /// A numeric IPv4 or IPv6 address without scope.
    package let address: String
    package let port: UInt16
    /// The interface's name, `wlan0`; nil for a static endpoint that names none.
    package let interface: String?
    /// The kernel's index of that interface, needed as scope of `fe80::` addresses; 0 where there is none.
    package let interfaceIndex: UInt32
    /// The host that announced the address (the SRV target); nil when the owner wrote the address down.
    package let host: SanitizedText?

    package init(
        address: String,
        port: UInt16,
        interface: String? = nil,
        interfaceIndex: UInt32 = 0,
        host: SanitizedText? = nil
    ) {
        self.address = address
        self.port = port
        self.interface = interface
        self.interfaceIndex = interfaceIndex
        self.host = host
    }
}

extension LANRoute {
    /// The address and its interface, without the port: `192.168.1.20%wlan0`.
    package var place: String { Approval.Address(self).place }
}

/// Through the cable: a TCP port on a phone's loopback.
package struct USBRoute: Hashable, Sendable, Codable {
    package let udid: UDID
    package let port: UInt16

    package init(udid: UDID, port: UInt16) {
        self.udid = udid
        self.port = port
    }
}

extension Route {
    /// Whether it goes through the network.
    package var isNetwork: Bool {
        if case .lan = self { true } else { false }
    }

    /// The host that announced it by mDNS; nil of a cable and of a configured address.
    package var host: SanitizedText? {
        if case .lan(let lan) = self { lan.host } else { nil }
    }

    /// The address with its interface, or the phone: `192.168.1.20%wlan0`.
    package var place: String {
        switch self {
        case .lan(let lan): lan.place
        case .usb(let usb): "\(usb.udid)"
        }
    }

    /// The network address; nil of a cable.
    package var address: String? {
        if case .lan(let lan) = self { lan.address } else { nil }
    }

    package var port: UInt16 {
        switch self {
        case .lan(let route): route.port
        case .usb(let route): route.port
        }
    }
}

/// In people's notation: `192.168.1.20:8080`, `[fe80::1%wlan0]:8080`, `usb:UDID:8080`.
extension Route: CustomStringConvertible {
    package var description: String {
        switch self {
        case .lan(let route):
            guard route.address.contains(":") else { return "\(route.address):\(route.port)" }
            let scope = route.address.lowercased().hasPrefix("fe80") ? route.interface.map { "%\($0)" } ?? "" : ""
            return "[\(route.address)\(scope)]:\(route.port)"
        case .usb(let route):
            return "usb:\(route.udid):\(route.port)"
        }
    }
}

extension Route: Codable {
    private enum Keys: String, CodingKey { case via }
    private enum Via: String, Codable { case lan, usb }

    package init(from decoder: any Decoder) throws {
        switch try decoder.container(keyedBy: Keys.self).decode(Via.self, forKey: .via) {
        case .lan: self = .lan(try LANRoute(from: decoder))
        case .usb: self = .usb(try USBRoute(from: decoder))
        }
    }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Keys.self)
        switch self {
        case .lan(let route):
            try container.encode(Via.lan, forKey: .via)
            try route.encode(to: encoder)
        case .usb(let route):
            try container.encode(Via.usb, forKey: .via)
            try route.encode(to: encoder)
        }
    }
}

/// A route of an endpoint, with the facts that its source reports and the trust that it has.
///
/// Trust belongs to the route and not to the endpoint: an approved cable says nothing about a network address.
package struct EndpointRoute: Hashable, Sendable {
    package let route: Route
    /// The app that runs there, as the route's source reports it; empty when the source does not know.
    package let app: SanitizedText
    /// Whether `app` is a bundle identifier, and not only a name.
    package let appIsBundleID: Bool
    /// The launch of the app, as the route's source reports it.
    package let boot: SanitizedText?
    /// Whether the route may be dialled: the verdict of `ApprovalPolicy`.
    package var approval: Endpoint.Approval
    /// Whether a secret is held for this route and this launch.
    package var isSecretHeld = false
    /// The app that answered on this route instead of `app`; nil unless there was a contradiction.
    package var mismatch: SanitizedText?

    /// Without `approval` it is as without any consent: a cable or a configured address is approved, an advert is not.
    package init(
        _ route: Route,
        app: SanitizedText = SanitizedText(""),
        appIsBundleID: Bool = false,
        boot: SanitizedText? = nil,
        approval: Endpoint.Approval? = nil,
        mismatch: SanitizedText? = nil
    ) {
        self.route = route
        self.app = app
        self.appIsBundleID = appIsBundleID
        self.boot = boot
        self.approval = approval ?? (route.host == nil ? .approved : .discovered)
        self.mismatch = mismatch
    }

    package var port: UInt16 { route.port }
    package var isApproved: Bool { approval == .approved }

    /// The launch that a secret is bound to: the one that the source reports, else the port.
    package var launch: String { boot.map { "boot \($0)" } ?? Self.launch(atPort: port) }

    package static func launch(atPort port: UInt16) -> String { "port \(port)" }
}

extension EndpointRoute: CustomStringConvertible {
    package var description: String { route.description }
}

/// In JSON the members of the route, with `app`, `appIsBundleID`, `boot`, `approval`, `secretHeld` and `mismatch` beside them.
extension EndpointRoute: Codable {
    private enum Keys: String, CodingKey {
        case app, appIsBundleID, boot, approval, mismatch, isSecretHeld = "secretHeld"
    }

    package init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Keys.self)
        route = try Route(from: decoder)
        app = try container.decodeIfPresent(SanitizedText.self, forKey: .app) ?? SanitizedText("")
        appIsBundleID = try container.decodeIfPresent(Bool.self, forKey: .appIsBundleID) ?? false
        boot = try container.decodeIfPresent(SanitizedText.self, forKey: .boot)
        approval = try container.decode(Endpoint.Approval.self, forKey: .approval)
        mismatch = try container.decodeIfPresent(SanitizedText.self, forKey: .mismatch)
        isSecretHeld = try container.decodeIfPresent(Bool.self, forKey: .isSecretHeld) ?? false
    }

    package func encode(to encoder: any Encoder) throws {
        try route.encode(to: encoder)
        var container = encoder.container(keyedBy: Keys.self)
        if !app.isEmpty { try container.encode(app, forKey: .app) }
        if appIsBundleID { try container.encode(true, forKey: .appIsBundleID) }
        try container.encodeIfPresent(boot, forKey: .boot)
        try container.encode(approval, forKey: .approval)
        try container.encodeIfPresent(mismatch, forKey: .mismatch)
        if isSecretHeld { try container.encode(true, forKey: .isSecretHeld) }
    }
}
