import CLinux
import Glibc

extension SocketAddress {
    /// A non-blocking stream socket of this address's family, closed on exec.
    package func makeSocket() throws -> Descriptor {
        let number = CLinux_socket(family)
        guard number >= 0 else { throw SocketError.failed(call: "socket", on: "\(self)", code: errno) }
        return Descriptor(owning: number)
    }

    /// Opens a connection.
    ///
    /// - Returns: Connected, non-blocking.
    /// - Throws: `SocketError`, whose `failed` case carries what connect(2) said; `CancellationError`.
    package func connect(
        within limit: Duration,
        clock: any Clock<Duration> = PollerClock()
    ) async throws -> Descriptor {
        let socket = try makeSocket()
        let number = socket.number
        let started = try withRaw { Glibc.connect(number, $0, $1) }
        if started != 0 {
            // An interrupted connect goes on by itself (connect(2)).
            guard errno == EINPROGRESS || errno == EINTR else {
                throw SocketError.failed(call: "connect", on: "\(self)", code: errno)
            }
            // To an address of this machine it is there by the time the call returns, and nobody has to be waited for.
            if !SocketOption.isWritable(number) {
                guard try await Poller.shared.wait(for: .writable, of: number, atMost: limit, by: clock) else {
                    throw SocketError.timedOut(self)
                }
            }
            let code = SocketOption.pendingError(of: number)
            guard code == 0 else { throw SocketError.failed(call: "connect", on: "\(self)", code: code) }
        }
        // A connect to a free port of this machine can meet itself when the kernel picks that very port as the local one
        // (simultaneous open, RFC 9293, section 3.5): then nobody listens there.
        if port != nil, Self.local(of: number) == Self.peer(of: number) {
            throw SocketError.failed(call: "connect", on: "\(self)", code: ECONNREFUSED)
        }
        return socket
    }
}

/// The few socket options that Patchbay sets or asks for.
package enum SocketOption {
    /// Turns Nagle's algorithm off: a reply in two small writes is not held back until the first is acknowledged.
    ///
    /// - Returns: False when the socket is not TCP.
    @discardableResult
    package static func setNoDelay(_ descriptor: CInt) -> Bool {
        set(CInt(IPPROTO_TCP), TCP_NODELAY, to: 1, descriptor)
    }

    /// Whether a socket can be written to now, or has failed.
    static func isWritable(_ descriptor: CInt) -> Bool {
        var asked = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
        return poll(&asked, 1, 0) == 1
    }

    /// Keeps an urgent byte (tcp(7)) in its place in the stream, where a relay passes it on like any other.
    @discardableResult
    package static func setUrgentInline(_ descriptor: CInt) -> Bool { set(SOL_SOCKET, SO_OOBINLINE, to: 1, descriptor) }

    /// Lets a listener have its port while connections of an earlier one are in TIME_WAIT.
    static func setReuseAddress(_ descriptor: CInt) { set(SOL_SOCKET, SO_REUSEADDR, to: 1, descriptor) }

    /// Whether an IPv6 listener leaves IPv4 alone, whatever the machine's default is.
    static func setIPv6Only(_ isOnly: Bool, _ descriptor: CInt) {
        set(CInt(IPPROTO_IPV6), IPV6_V6ONLY, to: isOnly ? 1 : 0, descriptor)
    }

    /// What an asynchronous connect ended with (SO_ERROR); reading it clears it.
    package static func pendingError(of descriptor: CInt) -> CInt {
        var code: CInt = 0
        var length = socklen_t(MemoryLayout<CInt>.size)
        return getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &code, &length) == 0 ? code : errno
    }

    /// How many bytes the other end has not taken yet: not acknowledged (tcp(7)), or not read (unix(7)). 0 if unknown.
    package static func unsent(by descriptor: CInt) -> Int {
        var count: CInt = 0
        return ioctl(descriptor, UInt(TIOCOUTQ), &count) == 0 ? Int(count) : 0
    }

    /// With how many waiting bytes a TCP socket is readable (SO_RCVLOWAT; tcp(7)); its end always makes it so.
    package static func setLowWater(_ count: Int, _ descriptor: CInt) {
        set(SOL_SOCKET, SO_RCVLOWAT, to: CInt(clamping: count), descriptor)
    }

    @discardableResult
    private static func set(_ level: CInt, _ option: CInt, to value: CInt, _ descriptor: CInt) -> Bool {
        var value = value
        return setsockopt(descriptor, level, option, &value, socklen_t(MemoryLayout<CInt>.size)) == 0
    }
}
