/// A service of this host: the instance on one interface, with its port.
struct LocalService: Hashable, Sendable {
    let key: ServiceKey
    let port: UInt16
}

/// The mDNS question whether a responder of this host has a service, and the check of the answer. Has no I/O.
///
/// The question goes to the multicast group with a TTL of 0, so that it never leaves this host. An answer with the same
/// random ID therefore comes from this host.
struct LocalServiceQuery {
    private static let srv: UInt16 = 33
    /// The class IN with the bit that asks for a unicast answer (RFC 6762, section 5.4).
    private static let unicastInternet: UInt16 = 0x8001

    let packet: [UInt8]
    private let id: UInt16
    private let port: UInt16

    init(for service: LocalService, id: UInt16 = .random(in: 1...UInt16.max)) {
        self.id = id
        port = service.port
        let labels =
            [service.key.name] + DNSName(plain: "\(service.key.type).\(service.key.domain)").labels + [[]]
        packet =
            Self.bytes(id, 0, 1, 0, 0, 0) + labels.flatMap { [UInt8($0.count)] + $0 }
            + Self.bytes(Self.srv, Self.unicastInternet)
    }

    /// Returns true if the answer has an SRV record with the port of the service.
    func isAnswered(by reply: [UInt8]) -> Bool {
        var reader = DNSMessageReader(reply)
        guard reader.number() == id, let flags = reader.number(), flags & 0x8000 != 0, flags & 0xF == 0,
            let questions = reader.number(), let answers = reader.number(), reader.skip(4)
        else { return false }
        for _ in 0..<questions { guard reader.skipName(), reader.skip(4) else { return false } }
        for _ in 0..<answers {
            // The class and the TTL do not matter.
            guard reader.skipName(), let type = reader.number(), reader.skip(6), let size = reader.number() else {
                return false
            }
            guard let data = reader.read(Int(size)) else { return false }
            if type == Self.srv, data.count > 6, UInt16(data[4]) << 8 | UInt16(data[5]) == port { return true }
        }
        return false
    }

    private static func bytes(_ numbers: UInt16...) -> [UInt8] {
        numbers.flatMap { [UInt8($0 >> 8), UInt8($0 & 0xFF)] }
    }
}

/// Reads the parts of a DNS message (RFC 1035, section 4.1) in order. Every read fails at the end of the message.
private struct DNSMessageReader {
    private var rest: ArraySlice<UInt8>

    init(_ message: [UInt8]) { rest = message[...] }

    mutating func number() -> UInt16? { read(2).map { UInt16($0[0]) << 8 | UInt16($0[1]) } }

    mutating func read(_ count: Int) -> [UInt8]? {
        guard rest.count >= count else { return nil }
        defer { rest = rest.dropFirst(count) }
        return Array(rest.prefix(count))
    }

    mutating func skip(_ count: Int) -> Bool { read(count) != nil }

    /// Skips a name, which ends with an empty label or with a pointer of two bytes.
    mutating func skipName() -> Bool {
        while let length = rest.popFirst() {
            if length == 0 { return true }
            if length & 0xC0 == 0xC0 { return skip(1) }
            guard length & 0xC0 == 0, skip(Int(length)) else { return false }
        }
        return false
    }
}
