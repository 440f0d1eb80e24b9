package import Logging
import SystemIO

/// The number of tunnel connections for which the process has descriptors.
///
/// Without this limit, tunnels could use every descriptor and make other parts fail.
package struct FileDescriptorBudget: Sendable {
    /// The client socket and the target socket.
    private static let perConnection = 2
    /// Descriptors for everything but tunnel connections: listeners (1,024 tunnels with at most two addresses each),
    /// 256 API connections, probes, Avahi, files.
    package static let reserve = 256

    /// The configured number of connections.
    let wanted: Int
    /// The number of connections that fit.
    package let connections: Int
    let limit: UInt64

    init(wanted: Int, limit: UInt64) {
        self.wanted = wanted
        self.limit = limit
        let room = (Int(clamping: limit) - Self.reserve) / Self.perConnection
        connections = min(wanted, max(room, 16))
    }

    /// Returns the number of descriptors of a process with this number of tunnel connections.
    package static func needed(for connections: Int) -> Int { connections * perConnection + reserve }

    /// Raises the descriptor limit, and logs a warning if it is too low.
    package static func make(wanted: Int, logger: Logger) -> FileDescriptorBudget {
        let budget = FileDescriptorBudget(wanted: wanted, limit: ProcessLimits.raiseDescriptors() ?? 1_024)
        if let warning = budget.warning { logger.warning("\(warning)") }
        return budget
    }

    var warning: String? {
        guard connections < wanted else { return nil }
        let enough = Self.needed(for: wanted)
        return
            "this process may have \(limit) files open, which is enough for \(connections) tunnel connections, not "
            + "for \(wanted) (tunnels.max_connections); raise the hard limit to \(enough) "
            + "(LimitNOFILE= in the unit, or `ulimit -Hn`)"
    }
}
