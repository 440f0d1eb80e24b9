import Synchronization

/// Counts the times that the routes to tunnels' targets may have changed, so that an answer about an older state of them
/// is known to be old.
final class RouteGeneration: Sendable {
    private let arrivals = Atomic<UInt64>(0)

    var count: UInt64 { arrivals.load(ordering: .acquiring) }

    func arrive() { arrivals.wrappingAdd(1, ordering: .releasing) }
}
