import Glibc

extension SocketAddress {
    /// Resolves a host name.
    ///
    /// getaddrinfo(3) may query the network and blocks, so each lookup runs on a thread of its own. A cancelled caller
    /// continues at once.
    ///
    /// - Returns: The addresses in getaddrinfo(3)'s order of preference; never empty.
    /// - Throws: `SocketError.malformed`; `CancellationError`.
    package static func addresses(of host: String, port: UInt16) async throws -> [SocketAddress] {
        if let address = SocketAddress(numeric: host, port: port) { return [address] }
        let addresses = Promise<[SocketAddress]>()
        startThread(named: "patchbay-lookup") { addresses.complete(Result { try lookUp(host, port) }) }
        return try await addresses.value()
    }

    private static func lookUp(_ host: String, _ port: UInt16) throws -> [SocketAddress] {
        var hints = addrinfo()
        hints.ai_socktype = CInt(SOCK_STREAM.rawValue)
        var list: UnsafeMutablePointer<addrinfo>?
        let status = getaddrinfo(host, String(port), &hints, &list)
        guard status == 0 else {
            throw SocketError.malformed("the host \(host) (\(String(cString: gai_strerror(status))))")
        }
        defer { freeaddrinfo(list) }
        let found = sequence(first: list) { $0?.pointee.ai_next }.prefix { $0 != nil }.compactMap { entry in
            entry.flatMap { address(in: $0.pointee) }
        }
        guard !found.isEmpty else {
            throw SocketError.malformed("the host \(host) (no IPv4 or IPv6 address)")
        }
        return found
    }

    private static func address(in entry: addrinfo) -> SocketAddress? {
        var storage = sockaddr_storage()
        guard let raw = entry.ai_addr, entry.ai_addrlen <= MemoryLayout<sockaddr_storage>.size else { return nil }
        withUnsafeMutableBytes(of: &storage) {
            $0.copyMemory(from: UnsafeRawBufferPointer(start: raw, count: Int(entry.ai_addrlen)))
        }
        return SocketAddress(storage)
    }
}

extension SocketAddress {
    /// True for an address of the public internet, which is never this machine, its networks, or another form of an
    /// address there. The lists are IANA's registries of special addresses (RFC 6890).
    package var isPublic: Bool {
        switch self {
        case .ipv4(let number, _): !Self.specialIPv4.contains { number >> (32 - $0.length) == $0.prefix }
        case .ipv6(let number, _, _):
            // 2000::/3 is all that is assigned. It excludes mapped, translated, unique local and link-local addresses.
            number >> 125 == 1 && !Self.specialIPv6.contains { number >> (128 - $0.length) == $0.prefix }
        case .unix: false
        }
    }

    // swift-format-ignore
    private static let specialIPv4: [(prefix: UInt32, length: UInt32)] = [
        (0, 8), (10, 8), (0x6440 >> 6, 10), (127, 8), (0xA9FE, 16), (0xAC1, 12), (0xC0_0000, 24), (0xC0_0002, 24),
        (0xC0_5863, 24), (0xC0A8, 16), (0xC612 >> 1, 15), (0xC6_3364, 24), (0xCB_0071, 24), (0xE, 4), (0xF, 4),
    ]

    /// IETF protocols with Teredo, documentation, and 6to4, which carries an IPv4 address.
    private static let specialIPv6: [(prefix: UInt128, length: UInt128)] = [
        (0x2001 << 7, 23), (0x2001_0DB8, 32), (0x2002, 16), (0x3FFF << 4, 20),
    ]
}
