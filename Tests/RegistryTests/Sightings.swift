import FoundationEssentials
import Model
import Registry
import Samples

/// The time of each event for which a test names no other.
let now = Date(timeIntervalSince1970: 1_000)

/// Short constructors for sightings.
enum Seen {
    static func network(
        _ app: String = "com.example.shop",
        machine: String = "iphone.local",
        port: UInt16 = 4_000,
        interface: String = "eth0",
        address: String = "192.168.1.20",
        name: String? = nil,
        kind: EndpointKind = .appreveal,
        txt: [String] = [],
        launchID: String? = nil,
        blocked: String? = nil
    ) -> Sighting {
        let name = name ?? "AppReveal-\(app)"
        return Sighting(
            id: Sighting.ID(source: .bonjour, key: "\(interface)/\(address.contains(":") ? 6 : 4)/\(name)/\(machine)"),
            kind: kind,
            app: SanitizedText(app),
            appIsBundleID: true,
            name: SanitizedText(name),
            machine: SanitizedText(machine),
            txt: TXTRecord(items: txt.map { Array($0.utf8) }),
            routes: blocked == nil
                ? [.network(address, port: port, interface: interface, machine: machine)] : [],
            port: port,
            launchID: launchID.map { SanitizedText($0) },
            blocked: blocked
        )
    }

    static func usb(
        _ app: String = "",
        udid: UDID = .sample,
        port: UInt16 = 4_000,
        kind: EndpointKind = .appreveal,
        launchID: String? = nil,
        isPartial: Bool = false
    ) -> Sighting {
        Sighting(
            id: Sighting.ID(source: .init(of: udid.platform), key: "\(udid)/\(port)"),
            kind: kind,
            app: SanitizedText(app),
            appIsBundleID: !app.isEmpty,
            name: SanitizedText(app),
            device: udid,
            role: SanitizedText(app.isEmpty ? "port-\(port)" : ""),
            routes: [.usb(USBRoute(udid: udid, port: port))],
            launchID: launchID.map { SanitizedText($0) },
            isPartial: isPartial
        )
    }

    /// An app that registered itself with a grant.
    static func registered(_ app: String, on device: String = "phone", grant: String = "g7f3a") -> Sighting {
        .sample(
            app,
            source: .registration,
            key: "\(grant)/mcp/\(app)/\(device.lowercased())",
            kind: .mcp,
            machine: device,
            routes: [.network(NetworkRoute(address: "10.0.0.2", port: 9_000, registration: "r-\(app)"))]
        )
    }

    static func config(_ name: String, app: String? = nil, port: UInt16 = 8_000) -> Sighting {
        .sample(
            app ?? name,
            source: .config,
            key: name,
            kind: .tcp,
            isBundleID: app != nil,
            name: name,
            routes: [.network("127.0.0.1", port: port)]
        )
    }
}

extension EndpointTrust {
    /// The approval of every network address of an endpoint.
    static func approving(_ endpoint: Endpoint) -> EndpointTrust {
        let network = endpoint.routes.compactMap { route -> (NetworkRoute, SanitizedText)? in
            if case .network(let lan) = route.route, lan.machine != nil { (lan, route.app) } else { nil }
        }
        return EndpointTrust(
            approval: Approval(
                id: "approval",
                endpoint: endpoint.id,
                approvedBy: .broker,
                approvedAt: Date(timeIntervalSince1970: 1_000),
                app: network.first?.1 ?? SanitizedText(""),
                machine: network.first?.0.machine ?? SanitizedText(""),
                addresses: network.map { Approval.Address($0.0) },
                port: network.first?.0.port
            )
        )
    }
}

extension EndpointTable {
    /// A table after these sightings.
    init(_ sightings: [Sighting]) {
        self.init()
        see(sightings)
    }

    /// A table after these sightings.
    init(_ first: Sighting, _ others: Sighting...) { self.init([first] + others) }

    @discardableResult mutating func see(_ sightings: Sighting...) -> [Change] { see(sightings) }

    @discardableResult mutating func see(_ sightings: [Sighting]) -> [Change] {
        sightings.flatMap { apply(.seen($0), at: now) }
    }

    @discardableResult mutating func lose(_ ids: Sighting.ID...) -> [Change] {
        ids.flatMap { apply(.lost($0), at: now) }
    }
}
