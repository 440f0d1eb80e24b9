import Glibc

/// What kind of address it is, as far as it decides whether and how it is dialled.
extension SocketAddress {
    /// Nil for unix sockets.
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

    /// The same address with another port; a unix socket stays as it is.
    package func with(port: UInt16) -> SocketAddress {
        switch self {
        case .ipv4(let number, _): .ipv4(number, port: port)
        case .ipv6(let number, _, let scope): .ipv6(number, port: port, scope: scope)
        case .unix: self
        }
    }

    /// `0.0.0.0` or `::`, which mean "every address" to a listener and are no place to dial.
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

    /// 224.0.0.0/4, ff00::/8, and the IPv4 broadcast address: one sender, many receivers, never a TCP stream.
    package var isMulticast: Bool {
        switch self {
        case .ipv4(let number, _): number >> 28 == 0xE || number == .max
        case .ipv6(let number, _, _): number >> 120 == 0xFF || mapped?.isMulticast == true
        case .unix: false
        }
    }

    /// fe80::/10, which is valid on one link and so needs a scope. (169.254.0.0/16 has no scope in the socket API.)
    package var needsScope: Bool {
        guard case .ipv6(let number, _, _) = self else { return false }
        return number >> 118 == 0x3FA
    }

    /// The address itself, or the IPv4 address that an IPv6 socket shows as `::ffff:1.2.3.4`.
    package var unmapped: SocketAddress { mapped ?? self }

    /// The IPv4 address inside `::ffff:0:0/96` (RFC 4291, section 2.5.5.2).
    private var mapped: SocketAddress? {
        guard case .ipv6(let number, let port, _) = self, number >> 32 == 0xFFFF else { return nil }
        return .ipv4(UInt32(truncatingIfNeeded: number), port: port)
    }
}
