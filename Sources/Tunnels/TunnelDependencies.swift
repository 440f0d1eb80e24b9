import Logging
package import Model
import Synchronization
import SystemIO

/// The parts that all tunnels of a table share. Creates the counters and the listeners of new tunnels.
struct TunnelDependencies: Sendable {
    let dialer: any TargetDialer
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

    func metrics(of id: String) -> TunnelMetrics {
        TunnelMetrics(
            id: id,
            failureSentence: dialer.failureSentence,
            connectionLimit: connectionLimit,
            totals: totals,
            feed: feed
        )
    }

    /// Returns the listener of a tunnel on its open sockets.
    func listener(for entry: TunnelEntry, on listeners: [Listener]) -> TunnelListener {
        let authorizer = ClientAuthorizer(
            spec: entry.spec,
            owner: entry.owner,
            holder: entry.holder,
            check: ownerCheck,
            policy: policy,
            inspector: ClientInspector(limits: limits.inspection, clock: clock)
        )
        return TunnelListener(
            id: entry.id,
            authorizer: authorizer,
            listeners: listeners,
            metrics: entry.metrics,
            dependencies: self
        )
    }
}

/// Decides whether a new connection may be made to the target of a tunnel.
package protocol ConnectionPolicy: Sendable {
    /// Evaluates a new connection.
    ///
    /// - Parameters:
    ///   - target: The target of the tunnel.
    ///   - holder: The holder of leases that created the tunnel; nil for the owner.
    ///   - owner: The UID of the tunnel's owner.
    /// - Returns: The reason for a refusal; nil if the connection may be made.
    func refusal(of target: TunnelTarget, for holder: String?, owner: UInt32) async -> DialError?
}

/// Counts possible changes of the tunnels' routes. A result with an older count is outdated.
final class RouteGenerationCounter: Sendable {
    private let counter = Atomic<UInt64>(0)

    var current: UInt64 { counter.load(ordering: .acquiring) }

    func increment() { counter.wrappingAdd(1, ordering: .releasing) }
}
