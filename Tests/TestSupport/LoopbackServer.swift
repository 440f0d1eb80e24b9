import CLinux
import Glibc
import Synchronization
import SystemIO

/// A TCP server on loopback, or a server on a unix socket, that stands in for an app. Each connection has its own thread.
package final class LoopbackServer: Sendable {
    private struct State {
        var isOpen = true
        var connections: Set<CInt> = []
        var accepted = 0
    }

    /// The TCP port; 0 for a unix socket.
    package let port: UInt16
    private let listener: CInt
    private let state = Mutex(State())

    /// Listens on the port; 0 selects a free one. `serve` gets a blocking socket, which is closed after its return.
    package init(
        address: String = "127.0.0.1",
        port: UInt16 = 0,
        in scratch: ScratchFolder?,
        serve: @escaping @Sendable (CInt) -> Void
    ) throws {
        (listener, self.port) = try Self.listen(address, port)
        startThread(named: "rig-listener") { [self] in accept(serve) }
        scratch?.atEnd { [self] in stop() }
    }

    /// Listens on a unix socket, whose path it takes over from a previous owner.
    ///
    /// `pause` is the time before each accept. The socket file stays after `stop()`.
    package init(
        unixPath path: String,
        backlog: CInt,
        pause: Duration,
        serve: @escaping @Sendable (CInt) -> Void
    ) throws {
        unlink(path)
        let listener = socket(AF_UNIX, CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        (self.listener, port) = (listener, 0)
        let status = try SocketAddress.unix(path: path).withRaw { bind(listener, $0, $1) }
        guard status == 0, Glibc.listen(listener, backlog) == 0 else {
            throw TestSupportError(call: "listening on \(path)")
        }
        startThread(named: "rig-listener") { [self] in accept(after: pause, serve) }
    }

    /// Closes the listener and every connection.
    package func stop() {
        state.withLock { state in
            guard state.isOpen else { return }
            state.isOpen = false
            // Wakes the threads that block on these descriptors; each closes its own.
            shutdown(listener, CInt(SHUT_RDWR))
            for connection in state.connections { shutdown(connection, CInt(SHUT_RDWR)) }
        }
    }

    package var accepted: Int { state.withLock { $0.accepted } }
    package var openConnections: Int { state.withLock { $0.connections.count } }

    private func accept(after pause: Duration = .zero, _ serve: @escaping @Sendable (CInt) -> Void) {
        while true {
            usleep(UInt32(pause / .microseconds(1)))
            let connection = accept4(listener, nil, nil, CInt(SOCK_CLOEXEC.rawValue))
            if connection < 0, errno == EINTR || errno == ECONNABORTED { continue }
            guard connection >= 0 else { break }
            let isOpen = state.withLock { state in
                state.accepted += 1
                if state.isOpen { state.connections.insert(connection) }
                return state.isOpen
            }
            guard isOpen else {
                close(connection)
                break
            }
            startThread(named: "rig-app") { [self] in
                serve(connection)
                state.withLock { state in
                    state.connections.remove(connection)
                    _ = close(connection)
                }
            }
        }
        close(listener)
    }

    private static func listen(_ address: String, _ port: UInt16) throws -> (CInt, UInt16) {
        let listener = socket(AF_INET, CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard listener >= 0 else { throw TestSupportError(call: "socket") }
        var one: CInt = 1
        setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, socklen_t(MemoryLayout<CInt>.size))
        var name = sockaddr_in()
        name.sin_family = sa_family_t(AF_INET)
        name.sin_port = port.bigEndian
        inet_pton(AF_INET, address, &name.sin_addr)
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isListening = withUnsafeMutablePointer(to: &name) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(listener, $0, length) == 0 && Glibc.listen(listener, 1024) == 0
                    && getsockname(listener, $0, &length) == 0
            }
        }
        guard isListening else {
            defer { close(listener) }
            throw TestSupportError(call: "listening on \(address):\(port)")
        }
        return (listener, UInt16(bigEndian: name.sin_port))
    }
}
