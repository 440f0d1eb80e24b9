import Model

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
