package import Model

/// What makes an endpoint the same one after a relaunch: its kind, its app, where it runs, and its role there.
///
/// Deliberately without port, address and Bonjour instance name: all three change while the app stays the same one for
/// the person who works with it.
package struct IdentityKey: Hashable, Sendable, Codable {
    package let kind: EndpointKind
    package let app: SanitizedText
    package let place: String
    package let role: SanitizedText

    package init(kind: EndpointKind, app: SanitizedText, place: String, role: SanitizedText) {
        self.kind = kind
        self.app = app
        self.place = place
        self.role = role
    }

    /// The key of whatever answers on a port of a phone without saying its name.
    init(ofNameless kind: EndpointKind, on udid: UDID, port: UInt16) {
        self.init(
            kind: kind,
            app: SanitizedText(""),
            place: "device:\(udid)",
            role: Sighting.namelessRole(port: port)
        )
    }

    /// The keys under which this sighting's app may be known already.
    ///
    /// Each source has places of its own: an advert that claims a phone's UDID is no key to the phone's endpoint.
    package static func candidates(for sighting: Sighting) -> [IdentityKey] {
        let place: String? =
            switch sighting.id.source {
            case .config: "config:\(sighting.id.key)"
            case .usb: sighting.device.map { "device:\($0)" }
            case .bonjour: sighting.host.map { "host:\(stem(ofHost: $0.text))" }
            }
        return place.map {
            [IdentityKey(kind: sighting.kind, app: sighting.app, place: $0, role: sighting.role)]
        } ?? []
    }

    /// The host's name without what the network adds to it.
    ///
    /// Avahi and mDNSResponder rename a host `name-2.local` when they believe that somebody else has its name, often
    /// wrongly (avahi/avahi#117): the number is no part of who it is.
    package static func stem(ofHost host: String) -> String {
        var name = Substring(host.lowercased())
        while name.hasSuffix(".") { name = name.dropLast() }
        if name.hasSuffix(".local") { name = name.dropLast(6) }
        if let hyphen = name.lastIndex(of: "-") {
            let number = name[name.index(after: hyphen)...]
            if (1...4).contains(number.count), number.allSatisfy({ ("0"..."9").contains($0) }), number.first != "0" {
                name = name[..<hyphen]
            }
        }
        return String(name)
    }
}

/// One listening server, as far as a source can tell servers apart: two sightings with the same server are the same app
/// seen through two interfaces or protocols; two servers are two apps, whatever their names say.
enum ServerKey: Hashable, Sendable {
    /// Kind, app, exact SRV target and port: an advert that claims another app's host and port stays a thing of its own.
    case lan(kind: EndpointKind, app: SanitizedText, host: String, port: UInt16)
    case usb(kind: EndpointKind, udid: UDID, port: UInt16)
    /// A line of the configuration or a person's `patchbay add`.
    case config(name: String)

    init(of sighting: Sighting) {
        switch (sighting.id.source, sighting.device) {
        case (.config, _): self = .config(name: sighting.id.key)
        case (.usb, let udid?): self = .usb(kind: sighting.kind, udid: udid, port: sighting.port)
        case (.bonjour, _), (.usb, nil):
            let host = sighting.host?.text.lowercased() ?? sighting.id.key
            self = .lan(kind: sighting.kind, app: sighting.app, host: host, port: sighting.port)
        }
    }

    /// What a sighting of the same app by the other way, cable or network, has in common with this one.
    var meeting: Meeting? {
        switch self {
        case .lan(let kind, _, _, let port), .usb(let kind, _, let port): Meeting(kind: kind, port: port)
        case .config: nil
        }
    }

    var isUSB: Bool {
        if case .usb = self { return true }
        return false
    }

    /// The same port answers the same protocol on the cable and on the network.
    struct Meeting: Hashable, Sendable {
        let kind: EndpointKind
        let port: UInt16
    }
}
