import Glibc

/// A connection on which nothing is sent, to learn when its peer ends.
package final class IdleConnection: Sendable {
    /// The silence in seconds after which the kernel tests a TCP connection. A host that vanished ends it 6 s later.
    private static let keepAliveIdle: CInt = 15
    /// The age in milliseconds up to which an acknowledgement counts. No host restarts in a second.
    private static let freshness: UInt32 = 1_000
    /// The maximum time for an acknowledgement.
    private static let testTimeout = Duration.seconds(1)
    /// The bytes that are discarded at a time.
    private static let discardLimit = 65_536

    private let connection: Connection
    private var number: CInt { connection.descriptor.number }

    /// Takes a connection over.
    package init(_ connection: consuming Connection) {
        self.connection = connection
        setKeepAlive(idle: Self.keepAliveIdle)
    }

    /// False if the peer has closed the connection. Reading the value discards what the peer has sent.
    ///
    /// Also false, from then on, if more than `discardLimit` bytes wait. The peer's end would follow these bytes, so such a
    /// connection is no evidence of a running peer. A peer that sends without end must not occupy this thread.
    package var isOpen: Bool {
        let isOpen = withUnsafeTemporaryAllocation(byteCount: 8_192, alignment: 1) { buffer in
            var discarded = 0
            while discarded <= Self.discardLimit {
                let count = recv(number, buffer.baseAddress, buffer.count, CInt(MSG_DONTWAIT))
                if count > 0 {
                    discarded += count
                } else if count == 0 || errno != EINTR {
                    return count < 0 && errno == EAGAIN
                }
            }
            return false
        }
        if !isOpen { interrupt() }
        return isOpen
    }

    /// Waits until the peer sends something or closes the connection.
    ///
    /// - Parameter limit: The maximum time; nil for no limit.
    /// - Returns: False if the time limit passed first.
    /// - Throws: The errors of `Poller.wait`.
    package func waitForActivity(atMost limit: Duration?) async throws -> Bool {
        guard let limit else {
            try await Poller.shared.wait(for: .readable, of: number)
            return true
        }
        return try await Poller.shared.wait(for: .readable, of: number, until: MonotonicInstant.now + limit)
    }

    /// Makes a pending `waitForActivity` return, and ends the connection.
    package func interrupt() { shutdown(number, CInt(SHUT_RDWR)) }

    /// Returns whether the peer's kernel still has the connection.
    ///
    /// A TCP connection to a host that lost its power looks open. A keepalive probe tests it without a byte of data:
    /// Linux sends one when `TCP_KEEPIDLE` becomes shorter than the silence (`tcp_sock_set_keepidle_locked`,
    /// net/ipv4/tcp.c). For other sockets, the same as `isOpen`.
    package func isAcknowledged() async -> Bool {
        guard let silence = sinceAcknowledgement, silence > Self.freshness else { return isOpen }
        setKeepAlive(idle: 1)
        defer { setKeepAlive(idle: Self.keepAliveIdle) }
        let timer = ElapsedTimer(PollerClock())
        var pause = Backoff.queueFull
        while timer.elapsed < Self.testTimeout, isOpen, (try? await pause.wait(clock: PollerClock())) != nil {
            if let silence = sinceAcknowledgement, silence <= Self.freshness { return isOpen }
        }
        return false
    }

    /// The milliseconds since the peer's last acknowledgement; nil for a socket that is not TCP.
    private var sinceAcknowledgement: UInt32? {
        var information = tcp_info()
        var size = socklen_t(MemoryLayout<tcp_info>.size)
        guard getsockopt(number, CInt(IPPROTO_TCP), TCP_INFO, &information, &size) == 0 else { return nil }
        return information.tcpi_last_ack_recv
    }

    private func setKeepAlive(idle: CInt) {
        SocketOption.setKeepAlive(number, idle: idle, interval: 2, count: 3)
    }
}
