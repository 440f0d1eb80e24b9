import CLinux
import Glibc
import Logging
import SystemIO

/// The listening sockets passed by systemd (sd_listen_fds(3)). They let clients wait while the broker restarts.
///
/// The type of a socket tells its purpose: one unix socket, and TCP sockets on loopback addresses.
struct SocketActivation: Sendable {
    /// The first descriptor passed by systemd.
    private static let first: CInt = 3

    private(set) var unix: CInt?
    private(set) var tcp: [CInt] = []

    /// Takes the descriptors passed to this process; none without socket activation.
    ///
    /// Without `LISTEN_PID`, the descriptors may be meant for another process, as sd_listen_fds(3) also assumes.
    ///
    /// - Throws: `DaemonError.activation`.
    init(environment: [String: String], logger: Logger) throws(DaemonError) {
        guard let count = environment["LISTEN_FDS"].flatMap({ Int($0) }), count > 0 else { return }
        guard let pid = environment["LISTEN_PID"] else {
            logger.notice(
                "LISTEN_FDS is ignored, because LISTEN_PID is not set; pass sockets with systemd or systemd-socket-activate"
            )
            return
        }
        guard Int32(pid) == getpid() else { return }
        guard count <= 16 else { throw .activation(reason: "\(count) were passed, one unix socket is expected") }
        for number in Self.first..<Self.first + CInt(count) { try add(number) }
    }

    /// Classifies one passed descriptor.
    private mutating func add(_ number: CInt) throws(DaemonError) {
        guard SocketOption.isListening(number) else {
            throw .activation(reason: "descriptor \(number) is no listening stream socket")
        }
        switch SocketAddress.local(of: number) {
        case .unix, nil:
            guard unix == nil else { throw .activation(reason: "two unix sockets were passed, one is expected") }
            unix = number
        case let address? where address.isLoopback:
            tcp.append(number)
        case let address?:
            // HTTP without TLS carries tokens and is restricted to this machine.
            throw .activation(reason: "\(address) is not on a loopback address")
        }
        // systemd passes blocking descriptors without close-on-exec.
        _ = CLinux_set_nonblocking(number)
        _ = CLinux_set_close_on_exec(number)
    }
}
