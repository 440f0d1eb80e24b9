import Metrics
import Model

/// The metrics of calls of apps.
enum CallMetrics {
    /// Records a call with its result, one of a few words.
    static func called(_ result: String, after duration: Duration) {
        timer(MetricDefinition.calls, [("result", result)]).recordNanoseconds(duration.nanoseconds)
    }

    /// Records the time that a call waited for an app that was not reachable.
    static func held(_ duration: Duration) {
        guard duration > .zero else { return }
        timer(MetricDefinition.holds, []).recordNanoseconds(duration.nanoseconds)
    }

    private static func timer(_ metric: MetricDefinition, _ dimensions: [(String, String)]) -> Timer {
        Timer(label: metric.name, dimensions: dimensions)
    }
}

extension Duration {
    fileprivate var nanoseconds: Int64 { components.seconds * 1_000_000_000 + components.attoseconds / 1_000_000_000 }
}
