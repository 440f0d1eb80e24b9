import Logging
package import Model
import Synchronization
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
    let routeGeneration = RouteGenerationCounter()
    /// The events of the listeners, with the ID of their tunnel.
    let events = AsyncStream.makeStream(of: (String, TunnelEvent).self)

    func metrics(of id: String) -> TunnelMetrics {
        TunnelMetrics(
            id: id,
            failureSentence: planner.failureSentence,
            connectionLimit: connectionLimit,
            totals: totals,
            feed: feed
        )
    }

    /// Returns the target's facts with the policy of a tunnel.
    ///
    /// - Throws: The reason why the target cannot be reached.
    func target(of entry: TunnelEntry) async throws(DialError) -> TargetSnapshot {
        let owner = TunnelOwner(user: entry.owner, holder: entry.holder)
        var target = try await planner.snapshot(of: entry.spec.target, for: owner)
        if let policy {
            target.refusal = await policy.check(of: entry.spec.target, for: entry.holder, owner: entry.owner)
        }
        return target
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

/// Counts possible changes of the tunnels' routes. A result with an older count is outdated.
final class RouteGenerationCounter: Sendable {
    private let counter = Atomic<UInt64>(0)

    var current: UInt64 { counter.load(ordering: .acquiring) }

    func increment() { counter.wrappingAdd(1, ordering: .releasing) }
}
