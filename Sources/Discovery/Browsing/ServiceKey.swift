import Model

/// One service as Avahi reports it: an instance on one interface over one protocol.
///
/// Name, type and domain together are not unique: two machines on two links may share all three.
struct ServiceKey: Hashable, Sendable {
    /// The kernel's interface index.
    let interface: CInt
    /// The IP version that carried the advertisement: 0 is IPv4, 1 is IPv6 (`AVAHI_PROTO_INET`, `AVAHI_PROTO_INET6`).
    let transport: CInt
    /// The bytes of the instance name. Not a `String`, because `String` compares composed and decomposed letters as
    /// equal and DNS does not.
    let name: [UInt8]
    let type: String
    let domain: String

    /// The ID of the sighting. Always ASCII, so that it can be logged.
    var id: Sighting.ID {
        let family = transport == 0 ? "ipv4" : "ipv6"
        return Sighting.ID(
            source: .bonjour,
            key: "\(interface)/\(family)/\(DNSName.escape(name))/\(DNSName(plain: type).escaped)"
                + "/\(DNSName(plain: domain).escaped)"
        )
    }

    /// The name as text. Avahi passes on only valid UTF-8.
    var instance: String { String(decoding: name, as: UTF8.self) }
}

/// A machine on one link. A and AAAA records are browsed per machine.
struct MachineKey: Hashable, Sendable {
    let interface: CInt
    /// The name in Avahi's escaped notation and in lower case, because DNS names compare without case.
    let name: String

    init(interface: CInt, name: String) {
        self.interface = interface
        self.name = name.lowercased()
    }
}

/// The result of resolving a service: the contents of its SRV and TXT records.
struct ResolvedService: Hashable, Sendable {
    /// The SRV target in Avahi's escaped notation.
    let machine: String
    let port: UInt16
    let txt: TXTRecord
    /// The single address returned by the resolver, if one was requested.
    let address: IPAddress?

    init(machine: String, port: UInt16, txt: TXTRecord, address: IPAddress? = nil) {
        self.machine = machine
        self.port = port
        self.txt = txt
        self.address = address
    }
}
