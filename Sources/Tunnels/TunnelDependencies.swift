import Logging
import Model
import Synchronization
import SystemIO

/// The parts that all tunnels of a table share. Creates the counters and the listeners of new tunnels.
struct TunnelDependencies: Sendable {
    let dialer: TargetDialer
    let relay: Relay
    let ownerCheck: ClientOwnerCheck
    let connectionLimit: TunnelConnectionLimiter
    let limits: TunnelLimits
    let clock: any Clock<Duration>
    let logger: Logger
    let feed = Broadcast<TunnelChange>(slow: .ends(after: 256))
    let routeGeneration = RouteGenerationCounter()

    func metrics(of id: String) -> TunnelMetrics {
        TunnelMetrics(id: id, connectionLimit: connectionLimit, feed: feed)
    }

    /// Returns the listener of a tunnel on its open sockets.
    func listener(for entry: TunnelEntry, on listeners: [Listener]) -> TunnelListener {
        let authorizer = ClientAuthorizer(
            spec: entry.spec,
            owner: entry.owner,
            check: ownerCheck,
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

/// Counts possible changes of the tunnels' routes. A result with an older count is outdated.
final class RouteGenerationCounter: Sendable {
    private let counter = Atomic<UInt64>(0)

    var current: UInt64 { counter.load(ordering: .acquiring) }

    func increment() { counter.wrappingAdd(1, ordering: .releasing) }
}
