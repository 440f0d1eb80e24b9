import CLinux
import Glibc
import Logging
import SystemIO

/// The listening sockets that systemd made for us (sd_listen_fds(3)), so that callers wait while we restart.
///
/// What each is for is seen by its kind: one unix socket, and TCP sockets on loopback addresses.
struct SocketActivation: Sendable {
    /// systemd passes descriptors from here on.
    private static let first: CInt = 3

    private(set) var unix: CInt?
    private(set) var tcp: [CInt] = []

    /// Those that were passed to this process; none when it was not started so.
    ///
    /// - Throws: `DaemonError.activation`.
    init(environment: [String: String]) throws(DaemonError) {
        guard let count = environment["LISTEN_FDS"].flatMap({ Int($0) }), count > 0 else { return }
        if let pid = environment["LISTEN_PID"], Int32(pid) != getpid() { return }
        guard count <= 16 else { throw .activation(what: "\(count) were passed, one unix socket is expected") }
        for number in Self.first..<Self.first + CInt(count) { try take(number) }
    }

    private mutating func take(_ number: CInt) throws(DaemonError) {
        var accepting: CInt = 0
        var length = socklen_t(MemoryLayout<CInt>.size)
        guard getsockopt(number, SOL_SOCKET, SO_ACCEPTCONN, &accepting, &length) == 0, accepting == 1 else {
            throw .activation(what: "descriptor \(number) is no listening stream socket")
        }
        switch SocketAddress.local(of: number) {
        case .unix, nil:
            guard unix == nil else { throw .activation(what: "two unix sockets were passed, one is expected") }
            unix = number
        case let address? where address.isLoopback:
            tcp.append(number)
        case let address?:
            // Plain HTTP with tokens in it is for this machine alone.
            throw .activation(what: "\(address) is not on a loopback address")
        }
        // systemd passes it blocking and across exec.
        _ = CLinux_set_nonblocking(number)
        _ = CLinux_set_close_on_exec(number)
    }
}

/// How many tunnel connections this process has descriptors for: running out would hurt everything else too.
struct FileDescriptorBudget: Equatable {
    /// A client and a carrier.
    private static let perConnection = 2
    /// For what is not a tunnel's connection: 1,024 tunnels listen on two addresses each at the most, 256 callers of the
    /// API, probes, Avahi, files.
    private static let reserve = 256

    /// What was asked for.
    let wanted: Int
    /// What there is room for.
    let connections: Int
    let limit: UInt64

    init(wanted: Int, limit: UInt64) {
        self.wanted = wanted
        self.limit = limit
        let room = (Int(clamping: limit) - Self.reserve) / Self.perConnection
        connections = min(wanted, max(room, 16))
    }

    /// Raises the limit as far as it goes, and says so where that is not far enough.
    static func make(wanted: Int, logger: Logger) -> FileDescriptorBudget {
        let limit = (try? FileDescriptorLimit.raise()) ?? (try? FileDescriptorLimit.current())
        let plan = FileDescriptorBudget(wanted: wanted, limit: limit?.soft ?? 1_024)
        if let warning = plan.warning { logger.warning("\(warning)") }
        return plan
    }

    var warning: String? {
        guard connections < wanted else { return nil }
        let enough = wanted * Self.perConnection + Self.reserve
        return
            "this process may have \(limit) files open, which is enough for \(connections) tunnel connections and not "
            + "for \(wanted) (tunnels.max_connections); raise the hard limit to \(enough) "
            + "(LimitNOFILE= in the unit, or `ulimit -Hn`)"
    }
}
