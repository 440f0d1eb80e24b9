/// A Bonjour service that Patchbay publishes on behalf of a client.
package struct Advertisement: Hashable, Sendable, Codable, Identifiable {
    package enum State: String, Hashable, Sendable, Codable {
        /// Avahi is not reachable. The service is published when Avahi appears.
        case waiting
        /// Avahi probes the network for a name conflict, for about 0.8 s (RFC 6762, section 8.1).
        case registering
        case published
        /// The service cannot be published. `reason` has the cause.
        case failed
    }

    /// The identifier of the advertisement: `a1`, `a2`, …
    package let id: String
    package let spec: AdvertisementSpec
    package var state: State
    package var reason: String?
    /// The name under which the service is published. Avahi changes the requested name after a collision.
    package var publishedName: SanitizedText

    package init(
        id: String,
        spec: AdvertisementSpec,
        state: State,
        reason: String? = nil,
        publishedName: SanitizedText
    ) {
        self.id = id
        self.spec = spec
        self.state = state
        self.reason = reason
        self.publishedName = publishedName
    }
}

/// The service to publish.
package struct AdvertisementSpec: Hashable, Sendable, Codable {
    /// The instance name, 1 to 63 bytes of UTF-8.
    package let name: String
    package let type: ServiceType
    /// The port of the server on this machine, 1 to 65535.
    package let port: UInt16
    package var txt: TXTRecord
    /// True for a service that is published on the loopback interface only. Programs of this machine find it at
    /// 127.0.0.1. Nil means every interface.
    package let local: Bool?

    package init(name: String, type: ServiceType, port: UInt16, txt: TXTRecord = TXTRecord(), local: Bool? = nil) {
        self.name = name
        self.type = type
        self.port = port
        self.txt = txt
        self.local = local
    }

    /// The reason why the service cannot be published, as a sentence. Nil when the specification is valid.
    package var validationError: String? {
        if !(1...SanitizedText.nameLimit).contains(name.utf8.count) {
            return "the name has \(name.utf8.count) bytes; a Bonjour name has 1 to \(SanitizedText.nameLimit)"
        }
        if name.unicodeScalars.contains(where: { $0.properties.generalCategory == .control }) {
            return "the name contains a control character; Bonjour names are plain text (RFC 6763, 4.1.1)"
        }
        if port == 0 { return "port 0 is not reachable; give the port on which the server listens" }
        return txt.validationError
    }
}

/// The body of `PATCH /v1/advertisements/{id}`: the new TXT record, which replaces the published one.
package struct AdvertisementUpdate: Hashable, Sendable, Codable {
    package let txt: TXTRecord

    package init(txt: TXTRecord) { self.txt = txt }
}

/// The mark of a service that a broker publishes for an app that it reaches itself.
///
/// Every broker ignores such a service. So two brokers never list each other's services, and never publish them again.
package enum BrokerTXTMarker {
    private static let key = "via"
    private static let value = "patchbay"

    /// Marks a TXT record.
    package static func set(on txt: inout TXTRecord) { txt.set(key, to: Array(value.utf8)) }

    package static func isSet(on txt: TXTRecord) -> Bool { txt[key]?.lowercased() == value }
}
