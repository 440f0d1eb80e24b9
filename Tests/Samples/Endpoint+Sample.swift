package import FoundationEssentials
package import Model

extension Endpoint {
    /// An endpoint of the app `com.example.shop`. `firstSeenAt` and `lastSeenAt` have no meaning for most tests.
    package static func sample(
        _ id: EndpointID = "shop",
        kind: EndpointKind = .appreveal,
        app: String = "com.example.shop",
        name: String = "Shop",
        version: String? = nil,
        location: Location = Location(),
        state: State = .online,
        reason: String? = nil,
        approval: Approval = .approved,
        routes: [Route] = [],
        txt: TXTRecord = TXTRecord(),
        sources: [Sighting.Source] = [],
        launchID: String? = nil,
        firstSeenAt: Date = .epoch,
        lastSeenAt: Date? = nil
    ) -> Endpoint {
        Endpoint(
            id: id,
            kind: kind,
            app: SanitizedText(app),
            name: SanitizedText(name),
            version: version.map { SanitizedText($0) },
            location: location,
            state: state,
            reason: reason,
            approval: approval,
            routes: routes.map { EndpointRoute($0) },
            txt: txt,
            sources: sources,
            launchID: launchID.map { SanitizedText($0) },
            firstSeenAt: firstSeenAt,
            lastSeenAt: lastSeenAt
        )
    }
}

extension Route {
    /// A route to an address, announced by a machine on an interface.
    package static func network(
        _ address: String = "192.168.1.20",
        port: UInt16 = 4_000,
        interface: String? = nil,
        interfaceIndex: UInt32 = 0,
        machine: String? = nil
    ) -> Route {
        let machine = machine.map { SanitizedText($0) }
        return .network(
            NetworkRoute(
                address: address,
                port: port,
                interface: interface,
                interfaceIndex: interfaceIndex,
                machine: machine
            )
        )
    }

    /// A route to a port of a phone on a cable.
    package static func usb(_ udid: UDID = .sample, port: UInt16) -> Route { .usb(USBRoute(udid: udid, port: port)) }
}

extension Date {
    /// 1970-01-01T00:00:00Z.
    package static let epoch = Date(timeIntervalSince1970: 0)
}
