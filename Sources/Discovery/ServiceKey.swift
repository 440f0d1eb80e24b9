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
