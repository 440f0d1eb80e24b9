import Metrics
import Model

/// The counters of all tunnels and streams together, for `/metrics`. They outlive removed tunnels.
struct RelayTotals: Sendable {
    private let connections = Counter(label: MetricDefinition.connections.name)
    private let up = Counter(label: MetricDefinition.relayedBytes.name, dimensions: [("direction", "up")])
    private let down = Counter(label: MetricDefinition.relayedBytes.name, dimensions: [("direction", "down")])

    func accepted() { connections.increment() }

    func relayed(up upBytes: Int, down downBytes: Int) {
        if upBytes > 0 { up.increment(by: upBytes) }
        if downBytes > 0 { down.increment(by: downBytes) }
    }

    func failed(_ reason: DialError.Reason) {
        Counter(label: MetricDefinition.connectionFailures.name, dimensions: [("reason", reason.rawValue)]).increment()
        guard reason == .limit else { return }
        Counter(label: MetricDefinition.limits.name, dimensions: [("limit", "tunnel-connections")]).increment()
    }
}
