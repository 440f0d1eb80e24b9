import CLinux
import Glibc
import Synchronization

/// A socket that others connect to; it listens from `init` until `close()`, or until nobody holds it any more.
///
/// A unix socket is made with mode 0600 and its file is removed at the end, if it still is the one that was made.
package final class Listener: Sendable {
    /// Where it listens; a port 0 that was asked for is the one that the kernel chose.
    package let address: SocketAddress

    private let number: CInt
    private let owned: Mutex<Descriptor?>
    private let file: UnixSocketFile?

    /// Binds and listens.
    ///
    /// - Parameters:
    ///   - address: Port 0 lets the kernel choose. `::` takes IPv4 as well, every other IPv6 address does not.
    ///   - backlog: How many connections may wait to be accepted; the kernel caps it at net.core.somaxconn.
    /// - Throws: `SocketError`.
    package init(on address: SocketAddress, backlog: CInt = 4_096) throws {
        let socket = try address.makeSocket()
        let number = socket.number
        if case .unix(let path) = address {
            file = try UnixSocketFile.bind(number, to: address, path: path, backlog: backlog)
            self.address = address
        } else {
            SocketOption.setReuseAddress(number)
            if case .ipv6 = address { SocketOption.setIPv6Only(!address.isUnspecified, number) }
            try Self.check(address.withRaw { Glibc.bind(number, $0, $1) }, "bind", address)
            try Self.check(listen(number, backlog), "listen", address)
            self.address = SocketAddress.local(of: number) ?? address
            file = nil
        }
        self.number = number
        owned = Mutex(socket)
    }

    deinit { close() }

    /// Stops listening; connections that wait in the queue are refused. When it returns the address is free.
    ///
    /// Nobody may be in `accept()` then, and nobody may call anything afterwards. A duplicate goes on listening by itself.
    package func close() {
        owned.withLock { owned in
            guard owned != nil else { return }
            // While the socket is still open: its inode's number cannot be another file's yet.
            file?.remove()
            owned = nil
        }
    }

    /// A second descriptor of the same socket, for a server that wants to own one; the file goes with this object still.
    ///
    /// - Throws: `SocketError`.
    package func duplicate() throws -> Descriptor {
        let copy = CLinux_duplicate(number)
        guard copy >= 0 else { throw SocketError.failed(call: "fcntl", on: "\(address)", code: errno) }
        return Descriptor(owning: copy)
    }

    /// Waits for the next connection.
    ///
    /// - Returns: Non-blocking, closed on exec.
    /// - Throws: `CancellationError`; `SocketError`. One that `isExhaustion` leaves the connection in the queue, so the
    ///   caller waits a little before it comes again, or it would spin.
    package func accept() async throws -> Descriptor {
        while true {
            try Task.checkCancellation()
            let accepted = CLinux_accept(number)
            if accepted >= 0 { return Descriptor(owning: accepted) }
            let code = errno
            switch code {
            case EAGAIN:
                try await Poller.shared.wait(for: .readable, of: number)
            case EMFILE, ENFILE, ENOBUFS, ENOMEM, EBADF, EINVAL, ENOTSOCK, EOPNOTSUPP:
                throw SocketError.failed(call: "accept4", on: "\(address)", code: code)
            default:
                continue  // The error of one connection, which is gone from the queue (accept(2)).
            }
        }
    }

    static func check(_ result: CInt, _ call: String, _ address: SocketAddress) throws {
        guard result != 0 else { return }
        throw errno == EADDRINUSE
            ? SocketError.inUse(address) : SocketError.failed(call: call, on: "\(address)", code: errno)
    }
}
