import Glibc

/// An IP address out of an A or AAAA record.
struct NetworkAddress: Hashable, Sendable {
    /// 4 or 16, in network order.
    let bytes: [UInt8]

    /// The loopback device is the first of every network namespace, and the kernel insists on index 1 for it
    /// (loopback_net_init).
    static let loopbackInterface: CInt = 1

    /// Nil unless the record's data has the size of an address.
    init?(bytes: [UInt8]) {
        guard bytes.count == 4 || bytes.count == 16 else { return nil }
        self.bytes = bytes
    }

    var isIPv4: Bool { bytes.count == 4 }

    /// `fe80::/10` or `169.254.0.0/16`.
    var isLinkLocal: Bool {
        isIPv4 ? bytes[0] == 169 && bytes[1] == 254 : bytes[0] == 0xFE && bytes[1] & 0xC0 == 0x80
    }

    var isLoopback: Bool {
        isIPv4 ? bytes[0] == 127 : bytes.dropLast().allSatisfy { $0 == 0 } && bytes[15] == 1
    }

    /// Whether an advert may make us dial it.
    ///
    /// mDNS is unauthenticated: whoever is on the link can announce any address. Loopback would turn the broker against
    /// its own machine, the metadata addresses against its cloud account; the others never lead to one host. An address
    /// of loopback is right only where the advert itself came over loopback.
    func isDialable(from interface: CInt) -> Bool {
        if isLoopback { return interface == Self.loopbackInterface }
        if isIPv4 {
            let isMetadata = bytes == [169, 254, 169, 254]
            return bytes[0] != 0 && bytes[0] < 224 && !isMetadata
        }
        // `::`, IPv4-compatible and IPv4-mapped addresses would bring back every IPv4 address refused above.
        let isMapped = bytes[..<10].allSatisfy { $0 == 0 }
        let isMetadata = bytes == [0xFD, 0, 0x0E, 0xC2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x02, 0x54]
        return bytes[0] != 0xFF && !isMapped && !isMetadata
    }
}

extension NetworkAddress: CustomStringConvertible {
    /// Numeric and without scope, as inet_ntop(3) writes it.
    var description: String {
        var text = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
        inet_ntop(isIPv4 ? AF_INET : AF_INET6, bytes, &text, socklen_t(text.count))
        return String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}
