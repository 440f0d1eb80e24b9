import CLinux
import Glibc

extension SocketAddress {
    /// Opens a non-blocking, close-on-exec stream socket of this address's family.
    package func makeSocket() throws -> Descriptor {
        let number = CLinux_socket(family)
        try SocketError.check(number, "socket", on: "\(self)")
        return Descriptor(owning: number)
    }

    /// Starts to connect a non-blocking socket.
    ///
    /// - Returns: 0 for a connected socket, otherwise the errno of connect(2). EINPROGRESS also for an interrupted connect,
    ///   which continues in the background.
    /// - Throws: `SocketError.malformed`.
    package func startConnect(_ descriptor: CInt) throws -> CInt {
        guard try withRaw({ Glibc.connect(descriptor, $0, $1) }) != 0 else { return 0 }
        guard errno == EINPROGRESS || errno == EINTR else { return errno }
        // A connect to a local address is complete when the call returns, without a wait.
        return SocketOption.isWritable(descriptor) ? SocketOption.pendingError(of: descriptor) : EINPROGRESS
    }

    /// True if a socket is connected to itself, so that no process listens.
    ///
    /// A connect to an unused local port connects to itself if the kernel chooses the same local port (simultaneous open,
    /// RFC 9293, section 3.5).
    package static func isSelfConnected(_ descriptor: CInt) -> Bool { local(of: descriptor) == peer(of: descriptor) }

    /// Connects to this address.
    ///
    /// - Returns: A connected, non-blocking socket.
    /// - Throws: `SocketError` with the errno of connect(2); `CancellationError`.
    package func connect(within limit: Duration) async throws -> Descriptor {
        let socket = try makeSocket()
        let number = socket.number
        var code = try startConnect(number)
        if code == EINPROGRESS {
            let deadline = MonotonicInstant.now + limit
            guard try await Poller.shared.wait(for: .writable, of: number, until: deadline) else {
                throw SocketError.timedOut(self)
            }
            code = SocketOption.pendingError(of: number)
        }
        if code == 0, port != nil, Self.isSelfConnected(number) { code = ECONNREFUSED }
        guard code == 0 else { throw SocketError.failed(call: "connect", on: "\(self)", code: code) }
        return socket
    }
}

/// The socket options used by Patchbay.
package enum SocketOption {
    /// Disables Nagle's algorithm: the second of two small writes does not wait for an acknowledgement.
    ///
    /// - Returns: False if the socket is not TCP.
    @discardableResult
    package static func setNoDelay(_ descriptor: CInt) -> Bool {
        set(CInt(IPPROTO_TCP), TCP_NODELAY, to: 1, on: descriptor)
    }

    /// Lets the kernel check an idle TCP connection (tcp(7)). The connection fails after `idle` seconds of silence and
    /// `count` probes, one each `interval` seconds. The defaults are about two minutes.
    package static func setKeepAlive(_ descriptor: CInt, idle: CInt = 60, interval: CInt = 10, count: CInt = 6) {
        set(SOL_SOCKET, SO_KEEPALIVE, to: 1, on: descriptor)
        set(CInt(IPPROTO_TCP), TCP_KEEPIDLE, to: idle, on: descriptor)
        set(CInt(IPPROTO_TCP), TCP_KEEPINTVL, to: interval, on: descriptor)
        set(CInt(IPPROTO_TCP), TCP_KEEPCNT, to: count, on: descriptor)
    }

    /// True if a socket is writable now or has failed.
    static func isWritable(_ descriptor: CInt) -> Bool {
        var asked = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
        return poll(&asked, 1, 0) == 1
    }

    /// Keeps an urgent byte (tcp(7)) in its place in the stream, so that a relay forwards it like any other byte.
    @discardableResult
    package static func setUrgentInline(_ descriptor: CInt) -> Bool {
        set(SOL_SOCKET, SO_OOBINLINE, to: 1, on: descriptor)
    }

    /// Allows a listener to bind while connections of an earlier one are in TIME_WAIT.
    static func setReuseAddress(_ descriptor: CInt) { set(SOL_SOCKET, SO_REUSEADDR, to: 1, on: descriptor) }

    /// Sets if an IPv6 listener rejects IPv4, independent of the system default.
    static func setIPv6Only(_ isOnly: Bool, _ descriptor: CInt) {
        set(CInt(IPPROTO_IPV6), IPV6_V6ONLY, to: isOnly ? 1 : 0, on: descriptor)
    }

    /// The result of an asynchronous connect (SO_ERROR); reading clears it.
    package static func pendingError(of descriptor: CInt) -> CInt {
        value(of: SO_ERROR, on: descriptor) ?? errno
    }

    /// True for a listening socket; false for any other descriptor, and for a closed one.
    package static func isListening(_ descriptor: CInt) -> Bool {
        (value(of: SO_ACCEPTCONN, on: descriptor) ?? 0) != 0
    }

    /// The user of the process that connected a unix socket (SO_PEERCRED, unix(7)); `UInt32.max` if the kernel does not
    /// know it.
    package static func peerUser(of descriptor: CInt) -> UInt32 { CLinux_peer_user(descriptor) }

    /// The process that called listen(2) on the peer of a connected unix socket (SO_PEERCRED); nil for TCP and for an
    /// unknown one.
    package static func peerListener(of descriptor: CInt) -> CInt? {
        var process: CInt = 0
        return CLinux_peer_process(descriptor, &process) == 0 && process > 0 ? process : nil
    }

    /// The number of sent bytes that the peer has not acknowledged (tcp(7)) or not read (unix(7)); 0 if unknown.
    package static func unsent(by descriptor: CInt) -> Int {
        var count: CInt = 0
        return ioctl(descriptor, UInt(TIOCOUTQ), &count) == 0 ? Int(count) : 0
    }

    /// Reads an option of all sockets; nil after an error, which is in `errno`.
    private static func value(of option: CInt, on descriptor: CInt) -> CInt? {
        var value: CInt = 0
        var length = socklen_t(MemoryLayout<CInt>.size)
        return getsockopt(descriptor, SOL_SOCKET, option, &value, &length) == 0 ? value : nil
    }

    @discardableResult
    private static func set(_ level: CInt, _ option: CInt, to value: CInt, on descriptor: CInt) -> Bool {
        var value = value
        return setsockopt(descriptor, level, option, &value, socklen_t(MemoryLayout<CInt>.size)) == 0
    }
}
