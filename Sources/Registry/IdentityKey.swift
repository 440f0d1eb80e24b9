package import Model

/// The attributes that identify an endpoint across relaunches: kind, app, place and role.
///
/// Port, address and Bonjour instance name are left out, because all three change while the app stays the same for its
/// user.
package struct IdentityKey: Hashable, Sendable, Codable {
    package let kind: EndpointKind
    package let app: SanitizedText
    package let location: String
    package let role: SanitizedText

    package init(kind: EndpointKind, app: SanitizedText, location: String, role: SanitizedText) {
        self.kind = kind
        self.app = app
        self.location = location
        self.role = role
    }

    /// The key of an unidentified server on a port of a device.
    init(ofNameless kind: EndpointKind, on udid: UDID, port: UInt16) {
        self.init(
            kind: kind,
            app: SanitizedText(""),
            location: "device:\(udid)",
            role: Sighting.namelessRole(port: port)
        )
    }

    /// The keys under which this sighting's app may be known, best first.
    ///
    /// Each source has its own places, so an advertisement that claims a device's UDID cannot match the device's
    /// endpoint. A random machine name is no place.
    package static func candidates(for sighting: Sighting) -> [IdentityKey] {
        let locations: [String?] =
            switch sighting.id.source {
            case .config: ["config:\(sighting.id.key)"]
            case .usbmuxd, .adb: [sighting.device.map { "device:\($0)" }]
            case .bonjour:
                [
                    sighting.deviceID.map { advertisedDevicePrefix + $0 },
                    sighting.machine == nil || sighting.machineName.isRandom
                        ? nil : machinePrefix + sighting.machineName.text,
                ]
            case .debuglink: [sighting.machine.map { "peer:\($0)" }]
            case .registration: ["registration:\(sighting.id.key)"]
            }
        return locations.compactMap(\.self).map { IdentityKey(of: sighting, at: $0) }
    }

    /// The keys with which the app of a sighting gets a reserved ID back. They are the candidates, and the addresses
    /// of a machine with a random name.
    static func reservations(for sighting: Sighting) -> [IdentityKey] {
        let isRandom = sighting.id.source == .bonjour && sighting.machineName.isRandom
        let places = isRandom ? sighting.claimedAddresses.map(location) : []
        return candidates(for: sighting) + places.map { IdentityKey(of: sighting, at: $0) }
    }

    /// The keys that reserve the ID of an endpoint for its app.
    static func reservations(of record: PersistedEndpoint) -> [IdentityKey] {
        guard let place = record.place, record.machine.map({ MachineName($0).isRandom }) == true else {
            return record.keys
        }
        return record.keys
            + place.addresses.map { address in
                IdentityKey(
                    kind: record.endpoint.kind,
                    app: record.endpoint.app,
                    location: location(address),
                    role: place.role
                )
            }
    }

    /// The keys that earlier versions made for a machine with a number in its name, which they left out. Empty for another
    /// machine.
    static func withoutNumber(for sighting: Sighting) -> [IdentityKey] {
        guard sighting.id.source == .bonjour, let name = sighting.machineName.withoutNumber else { return [] }
        return [IdentityKey(of: sighting, at: machinePrefix + name)]
    }

    /// In saved keys. The prefix is older than the word machine.
    private static let machinePrefix = "host:"
    private static let advertisedDevicePrefix = "device-id:"

    private static func location(_ claimed: ClaimedAddress) -> String {
        "address:\(claimed.address)%\(claimed.interface ?? "")"
    }

    private init(of sighting: Sighting, at location: String) {
        self.init(kind: sighting.kind, app: sighting.app, location: location, role: sighting.role)
    }

    /// The machine name of an advertised app. Nil for every other key.
    var machineName: Substring? {
        location.hasPrefix(Self.machinePrefix) ? location.dropFirst(Self.machinePrefix.count) : nil
    }

    /// The device ID in the TXT record of an advertised app. Nil for every other key.
    var advertisedDevice: Substring? {
        location.hasPrefix(Self.advertisedDevicePrefix) ? location.dropFirst(Self.advertisedDevicePrefix.count) : nil
    }

    /// The key on another machine.
    func on(machine name: MachineName) -> IdentityKey {
        IdentityKey(kind: kind, app: app, location: Self.machinePrefix + name.text, role: role)
    }

    /// The key with a decoded machine name. Earlier versions stored names as Avahi escapes them.
    var decoded: IdentityKey { machineName.map { on(machine: MachineName($0)) } ?? self }

    /// The grant of an app that registered itself; nil for every other app.
    var grant: Substring? {
        let prefix = "registration:"
        return location.hasPrefix(prefix) ? location.dropFirst(prefix.count).prefix { $0 != "/" } : nil
    }

    /// The machine name that a phone derives from its name: "Anna’s iPhone" announces `Annas-iPhone.local`.
    ///
    /// - Returns: The name in lower case, without `.local`. Nil if the name has no ASCII letter or digit.
    package static func machineName(ofDeviceNamed name: SanitizedText) -> String? {
        let words = name.text.lowercased().filter { $0 != "'" && $0 != "’" }
            .split { !($0.isASCII && ($0.isLetter || $0.isNumber)) }
        return words.isEmpty ? nil : words.joined(separator: "-")
    }
}

/// One listening server, as far as a source can tell servers apart.
///
/// Two sightings with the same key are the same app on two interfaces or IP versions. Two keys are two apps, even with
/// equal names.
enum ServerKey: Hashable, Sendable {
    /// Kind, app, exact SRV target and port. An advertisement that claims another app's machine and port keeps a key of
    /// its own.
    case network(kind: EndpointKind, app: SanitizedText, machine: String, port: UInt16)
    case usb(kind: EndpointKind, udid: UDID, socket: DeviceSocket)
    /// A Dart VM service on this host. The app and Flutter's tool announce it under different names.
    case localDartVM(port: UInt16, authCode: DartAuthCode?)
    /// A line of the configuration or an endpoint added with `patchbay add`.
    case config(name: String)
    /// An app that registered itself: the key of its sighting, which names the grant.
    case registered(kind: EndpointKind, key: String, port: UInt16)

    init(of sighting: Sighting) {
        switch (sighting.id.source, sighting.device) {
        case (.config, _): self = .config(name: sighting.id.key)
        case (.registration, _): self = .registered(kind: sighting.kind, key: sighting.id.key, port: sighting.port)
        case (.usbmuxd, let udid?), (.adb, let udid?):
            self = .usb(kind: sighting.kind, udid: udid, socket: sighting.deviceSocket)
        case (.bonjour, _) where sighting.kind == .dartVM && sighting.isOnThisHost:
            self = .localDartVM(port: sighting.port, authCode: sighting.authCode)
        case (.bonjour, _), (.debuglink, _), (.usbmuxd, nil), (.adb, nil):
            let machine = sighting.machine?.text.lowercased() ?? sighting.id.key
            self = .network(kind: sighting.kind, app: sighting.app, machine: machine, port: sighting.port)
        }
    }

    /// The key that this server shares with other reports of the same app's server.
    var portKey: PortKey? {
        switch self {
        case .network(let kind, _, _, let port), .usb(let kind, _, .port(let port)),
            .registered(let kind, _, let port):
            PortKey(kind: kind, port: port)
        case .usb(_, _, .abstract), .config, .localDartVM: nil
        }
    }

    var isUSB: Bool {
        if case .usb = self { return true }
        return false
    }

    var isRegistered: Bool {
        if case .registered = self { return true }
        return false
    }

    /// True if advertisements of the same launch join the endpoint of this server.
    var isAnchor: Bool { isUSB || isRegistered }

    /// A kind and port. The same port serves the same protocol over USB and over the network.
    struct PortKey: Hashable, Sendable {
        let kind: EndpointKind
        let port: UInt16
    }
}
