/// A Bonjour service that Patchbay publishes for somebody.
package struct Advertisement: Hashable, Sendable, Codable, Identifiable {
    package enum State: String, Hashable, Sendable, Codable {
        /// Avahi is not there; it is published as soon as it is.
        case waiting
        /// Avahi is asking the network whether the name is free (RFC 6762, section 8.1; about 0.8 s).
        case registering
        case published
        /// It cannot be published; `reason` says why.
        case failed
    }

    /// `a1`, `a2`…
    package let id: String
    package let spec: AdvertisementSpec
    package var state: State
    package var reason: String?
    /// The name under which it is published: the one asked for, or what Avahi made of it after a collision.
    package var finalName: SanitizedText

    package init(
        id: String,
        spec: AdvertisementSpec,
        state: State,
        reason: String? = nil,
        finalName: SanitizedText
    ) {
        self.id = id
        self.spec = spec
        self.state = state
        self.reason = reason
        self.finalName = finalName
    }
}

/// What is to be published.
package struct AdvertisementSpec: Hashable, Sendable, Codable {
    /// 1 to 63 UTF-8 bytes.
    package let name: String
    package let type: ServiceType
    /// 1 to 65535, on this machine.
    package let port: UInt16
    package let txt: TXTRecord

    package init(name: String, type: ServiceType, port: UInt16, txt: TXTRecord = TXTRecord()) {
        self.name = name
        self.type = type
        self.port = port
        self.txt = txt
    }

    /// Why this cannot be published, in words; nil when it can.
    package var problem: String? {
        if !(1...SanitizedText.nameLimit).contains(name.utf8.count) {
            return "the name has \(name.utf8.count) bytes; a Bonjour name has 1 to \(SanitizedText.nameLimit)"
        }
        if name.unicodeScalars.contains(where: { $0.properties.generalCategory == .control }) {
            return "the name holds a control character; Bonjour names are plain text (RFC 6763, 4.1.1)"
        }
        if port == 0 { return "port 0 cannot be reached by anybody; give the port that the server listens on" }
        return txt.problem
    }
}

/// The body of `PATCH /v1/advertisements/{id}`: the TXT record that takes the place of the one published.
package struct AdvertisementUpdate: Hashable, Sendable, Codable {
    package let txt: TXTRecord

    package init(txt: TXTRecord) { self.txt = txt }
}
