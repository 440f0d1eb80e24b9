import Logging
package import Model
import SystemIO

/// The parts that all tunnels of a table share. Creates the counters and the listeners of new tunnels.
struct TunnelDependencies: Sendable {
    let planner: any TargetPlanner
    let relay: Relay
    let ownerCheck: ClientOwnerCheck
    let policy: (any ConnectionPolicy)?
    let connectionLimit: TunnelConnectionLimiter
    let limits: TunnelLimits
    let clock: any Clock<Duration>
    let logger: Logger
    let totals = RelayTotals()
    let feed = Broadcast<TunnelChange>(slow: .ends(after: 256))
    /// The events of the listeners, with the ID of their tunnel.
    let events = AsyncStream.makeStream(of: (String, TunnelEvent).self)

    func metrics(of id: String, for holder: String? = nil) -> TunnelMetrics {
        TunnelMetrics(
            id: id,
            holder: holder,
            failureSentence: planner.failureSentence,
            connectionLimit: connectionLimit,
            totals: totals,
            feed: feed
        )
    }
}

/// Decides whether a new connection may be made to the target of a tunnel.
package protocol ConnectionPolicy: Sendable {
    /// Returns the check of new connections to a target. The check is made for each connection and must be fast.
    ///
    /// - Parameters:
    ///   - target: The target of the tunnel.
    ///   - holder: The holder of leases that created the tunnel; nil for the owner.
    ///   - owner: The UID of the tunnel's owner.
    /// - Returns: A function that returns the reason for a refusal; nil if the connection may be made.
    func check(of target: TunnelTarget, for holder: String?, owner: UInt32) async -> @Sendable () -> DialError?
}
