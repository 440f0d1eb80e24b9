import Logging
import SystemIO

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
