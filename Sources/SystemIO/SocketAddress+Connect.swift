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
