import Model

/// One service as Avahi tells it: an instance on one interface over one protocol.
///
/// Neither the name alone nor name, type and domain are unique: two hosts on two links may share all three.
struct ServiceKey: Hashable, Sendable {
    /// The kernel's index.
    let interface: CInt
    /// The protocol that the advert travelled on: 0 is IPv4, 1 is IPv6 (`AVAHI_PROTO_INET`, `AVAHI_PROTO_INET6`).
    let transport: CInt
    /// The instance name's bytes. Not a String: Swift takes a composed and a decomposed letter for equal, DNS does not.
    let name: [UInt8]
    let type: String
    let domain: String

    /// The key of the sighting: ASCII whatever was received, so that it may be logged.
    var id: Sighting.ID {
        let family = transport == 0 ? "ipv4" : "ipv6"
        return Sighting.ID(
            source: .bonjour,
            key: "\(interface)/\(family)/\(DNSName.escape(name))/\(DNSName(plain: type).escaped)"
                + "/\(DNSName(plain: domain).escaped)"
        )
    }

    /// The name as text; Avahi passes on only valid UTF-8.
    var instance: String { String(decoding: name, as: UTF8.self) }
}

/// A host on one link: what A and AAAA records are asked for.
struct HostKey: Hashable, Sendable {
    let interface: CInt
    /// In Avahi's escaped notation and lower case, because DNS names compare without case.
    let name: String

    init(interface: CInt, name: String) {
        self.interface = interface
        self.name = name.lowercased()
    }
}

/// What resolving a service gave: the contents of its SRV and TXT records.
struct ResolvedService: Hashable, Sendable {
    /// The SRV target in Avahi's escaped notation.
    let host: String
    let port: UInt16
    let txt: TXTRecord
    /// The one address that a resolver names by itself, when it was asked to.
    let address: IPAddress?

    init(host: String, port: UInt16, txt: TXTRecord, address: IPAddress? = nil) {
        self.host = host
        self.port = port
        self.txt = txt
        self.address = address
    }
}
