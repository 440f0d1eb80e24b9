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
    ///
    /// - Throws: `DaemonError.activation`.
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

/// The number of tunnel connections for which the process has descriptors.
///
/// Without this limit, tunnels could use every descriptor and make other parts fail.
struct FileDescriptorBudget: Equatable {
    /// The client socket and the target socket.
    private static let perConnection = 2
    /// Descriptors for everything but tunnel connections: listeners (1,024 tunnels with at most two addresses each),
    /// 256 API connections, probes, Avahi, files.
    private static let reserve = 256

    /// The configured number of connections.
    let wanted: Int
    /// The number of connections that fit.
    let connections: Int
    let limit: UInt64

    init(wanted: Int, limit: UInt64) {
        self.wanted = wanted
        self.limit = limit
        let room = (Int(clamping: limit) - Self.reserve) / Self.perConnection
        connections = min(wanted, max(room, 16))
    }

    /// Raises the descriptor limit, and logs a warning if it is too low.
    static func make(wanted: Int, logger: Logger) -> FileDescriptorBudget {
        let budget = FileDescriptorBudget(wanted: wanted, limit: ProcessLimits.raiseDescriptors() ?? 1_024)
        if let warning = budget.warning { logger.warning("\(warning)") }
        return budget
    }

    var warning: String? {
        guard connections < wanted else { return nil }
        let enough = wanted * Self.perConnection + Self.reserve
        return
            "this process may have \(limit) files open, which is enough for \(connections) tunnel connections, not "
            + "for \(wanted) (tunnels.max_connections); raise the hard limit to \(enough) "
            + "(LimitNOFILE= in the unit, or `ulimit -Hn`)"
    }
}
