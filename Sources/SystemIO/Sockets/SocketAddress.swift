package import Glibc

/// A socket address of one of the three supported families.
package enum SocketAddress: Hashable, Sendable {
    /// The address as a number: `127.0.0.1` is `0x7F000001`.
    case ipv4(UInt32, port: UInt16)
    /// The scope is the interface index of a link-local address; 0 for other addresses.
    case ipv6(UInt128, port: UInt16, scope: UInt32)
    case unix(path: String)

    /// Parses a numeric address, for IPv6 with an optional `%interface` or `%index`. Does not use DNS.
    ///
    /// - Returns: Nil if the text is not a numeric address, or names an unknown interface.
    package init?(numeric text: some StringProtocol, port: UInt16, scope: UInt32 = 0) {
        // inet_pton(3) stops at the first zero byte and would accept the text before it.
        guard !text.utf8.contains(0) else { return nil }
        var v4 = in_addr()
        if inet_pton(AF_INET, String(text), &v4) == 1 {
            self = .ipv4(UInt32(bigEndian: v4.s_addr), port: port)
            return
        }
        let parts = text.split(separator: "%", maxSplits: 1, omittingEmptySubsequences: false)
        var scope = scope
        if parts.count == 2 {
            scope = UInt32(parts[1]) ?? if_nametoindex(String(parts[1]))
            guard scope != 0 else { return nil }
        }
        var v6 = in6_addr()
        guard let first = parts.first, inet_pton(AF_INET6, String(first), &v6) == 1 else { return nil }
        let number = withUnsafeBytes(of: v6) { UInt128(bigEndian: $0.loadUnaligned(as: UInt128.self)) }
        self = .ipv6(number, port: port, scope: scope)
    }

    /// Converts a kernel address. Nil for other families and for unnamed unix sockets.
    package init?(_ storage: sockaddr_storage) {
        let address = withUnsafeBytes(of: storage) { bytes -> SocketAddress? in
            switch CInt(storage.ss_family) {
            case AF_INET:
                let raw = bytes.loadUnaligned(as: sockaddr_in.self)
                return .ipv4(UInt32(bigEndian: raw.sin_addr.s_addr), port: UInt16(bigEndian: raw.sin_port))
            case AF_INET6:
                let raw = bytes.loadUnaligned(as: sockaddr_in6.self)
                let number = withUnsafeBytes(of: raw.sin6_addr) { $0.loadUnaligned(as: UInt128.self) }
                return .ipv6(
                    UInt128(bigEndian: number),
                    port: UInt16(bigEndian: raw.sin6_port),
                    scope: raw.sin6_scope_id
                )
            case AF_UNIX:
                let path = bytes.dropFirst(MemoryLayout<sa_family_t>.size).prefix { $0 != 0 }
                return path.isEmpty ? nil : .unix(path: String(decoding: path, as: UTF8.self))
            default:
                return nil
            }
        }
        guard let address else { return nil }
        self = address
    }

    /// The local address of a socket (getsockname(2)).
    package static func local(of descriptor: CInt) -> SocketAddress? { query(getsockname, descriptor) }

    /// The peer address of a socket (getpeername(2)); nil for an unconnected socket.
    package static func peer(of descriptor: CInt) -> SocketAddress? { query(getpeername, descriptor) }

    private static func query(
        _ call: (CInt, UnsafeMutablePointer<sockaddr>, UnsafeMutablePointer<socklen_t>) -> CInt,
        _ descriptor: CInt
    ) -> SocketAddress? {
        var storage = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        let result = withUnsafeMutablePointer(to: &storage) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { call(descriptor, $0, &length) }
        }
        return result == 0 ? SocketAddress(storage) : nil
    }

    /// Calls `body` with the address in the kernel's format.
    ///
    /// - Throws: `SocketError.malformed` for a path that does not fit; the error of `body`.
    package func withRaw<Result>(_ body: (UnsafePointer<sockaddr>, socklen_t) throws -> Result) throws -> Result {
        switch self {
        case .ipv4(let number, let port):
            var raw = sockaddr_in()
            raw.sin_family = sa_family_t(AF_INET)
            raw.sin_port = port.bigEndian
            raw.sin_addr.s_addr = number.bigEndian
            return try Self.withPointer(raw, body)
        case .ipv6(let number, let port, let scope):
            var raw = sockaddr_in6()
            raw.sin6_family = sa_family_t(AF_INET6)
            raw.sin6_port = port.bigEndian
            withUnsafeMutableBytes(of: &raw.sin6_addr) { $0.storeBytes(of: number.bigEndian, as: UInt128.self) }
            raw.sin6_scope_id = scope
            return try Self.withPointer(raw, body)
        case .unix(let path):
            var raw = sockaddr_un()
            raw.sun_family = sa_family_t(AF_UNIX)
            let room = MemoryLayout.size(ofValue: raw.sun_path)
            var text = path
            let isValid = text.withUTF8 { bytes in
                // A zero byte would truncate the path and create another socket than requested.
                guard (1..<room).contains(bytes.count), !bytes.contains(0) else { return false }
                withUnsafeMutableBytes(of: &raw.sun_path) { $0.copyBytes(from: bytes) }
                return true
            }
            guard isValid else {
                throw SocketError.malformed("the path \"\(path)\" (1 to \(room - 1) bytes, none of them zero)")
            }
            return try Self.withPointer(raw, body)
        }
    }

    private static func withPointer<Raw, Result>(
        _ raw: Raw,
        _ body: (UnsafePointer<sockaddr>, socklen_t) throws -> Result
    ) rethrows -> Result {
        try withUnsafePointer(to: raw) { pointer in
            try pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                try body($0, socklen_t(MemoryLayout<Raw>.size))
            }
        }
    }
}

/// Formats as `127.0.0.1:80`, `[fe80::1%wlan0]:80`, or the path.
extension SocketAddress: CustomStringConvertible {
    package var description: String {
        switch self {
        case .ipv4(_, let port): "\(host):\(port)"
        case .ipv6(_, let port, _): "[\(host)]:\(port)"
        case .unix(let path): path
        }
    }

    /// The address without the port, for IPv6 with the scope; the path of a unix socket.
    package var host: String {
        var text = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
        switch self {
        case .ipv4(let number, _):
            var raw = in_addr(s_addr: number.bigEndian)
            inet_ntop(AF_INET, &raw, &text, socklen_t(text.count))
            return Self.string(text)
        case .ipv6(let number, _, let scope):
            var raw = number.bigEndian
            inet_ntop(AF_INET6, &raw, &text, socklen_t(text.count))
            guard scope != 0 else { return Self.string(text) }
            var name = [CChar](repeating: 0, count: Int(IF_NAMESIZE))
            let isNamed = if_indextoname(scope, &name) != nil
            return "\(Self.string(text))%\(isNamed ? Self.string(name) : String(scope))"
        case .unix(let path):
            return path
        }
    }

    private static func string(_ text: [CChar]) -> String {
        String(decoding: text.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
    }
}

/// Properties that decide if and how an address is dialed.
extension SocketAddress {
    /// The port; nil for unix sockets.
    package var port: UInt16? {
        switch self {
        case .ipv4(_, let port), .ipv6(_, let port, _): port
        case .unix: nil
        }
    }

    /// `AF_INET`, `AF_INET6` or `AF_UNIX`.
    package var family: CInt {
        switch self {
        case .ipv4: AF_INET
        case .ipv6: AF_INET6
        case .unix: AF_UNIX
        }
    }

    /// Returns the address with another port; unix sockets are returned unchanged.
    package func with(port: UInt16) -> SocketAddress {
        switch self {
        case .ipv4(let number, _): .ipv4(number, port: port)
        case .ipv6(let number, _, let scope): .ipv6(number, port: port, scope: scope)
        case .unix: self
        }
    }

    /// True for `0.0.0.0` and `::`, which a listener can use and which cannot be dialed.
    package var isUnspecified: Bool {
        switch self {
        case .ipv4(let number, _): number == 0
        case .ipv6(let number, _, _): number == 0 || mapped?.isUnspecified == true
        case .unix: false
        }
    }

    package var isLoopback: Bool {
        switch self {
        case .ipv4(let number, _): number >> 24 == 127
        case .ipv6(let number, _, _): number == 1 || mapped?.isLoopback == true
        case .unix: false
        }
    }

    /// True for 224.0.0.0/4, ff00::/8, and the IPv4 broadcast address, which TCP cannot use.
    package var isMulticast: Bool {
        switch self {
        case .ipv4(let number, _): number >> 28 == 0xE || number == .max
        case .ipv6(let number, _, _): number >> 120 == 0xFF || mapped?.isMulticast == true
        case .unix: false
        }
    }

    /// True for fe80::/10, which is valid on one link and needs a scope. 169.254.0.0/16 has no scope in the socket API.
    package var needsScope: Bool {
        guard case .ipv6(let number, _, _) = self else { return false }
        return number >> 118 == 0x3FA
    }

    /// The address itself, or the IPv4 address of an IPv4-mapped address such as `::ffff:1.2.3.4`.
    package var unmapped: SocketAddress { mapped ?? self }

    /// The IPv4 address inside `::ffff:0:0/96` (RFC 4291, section 2.5.5.2).
    private var mapped: SocketAddress? {
        guard case .ipv6(let number, let port, _) = self, number >> 32 == 0xFFFF else { return nil }
        return .ipv4(UInt32(truncatingIfNeeded: number), port: port)
    }
}
