package import CoreMetrics
package import Model
import Synchronization

/// The values of all metrics, as a backend of swift-metrics with Prometheus' text format.
///
/// Metrics of libraries, which are not defined, are dropped.
package final class PrometheusRegistry: MetricsFactory {
    private let definitions: [String: MetricDefinition]
    /// The series of each metric by their labels.
    private let families: Mutex<[String: [LabelSet: MetricSeries]]>

    package init(_ definitions: [MetricDefinition] = MetricDefinition.all) {
        self.definitions = Dictionary(definitions.map { ($0.name, $0) }) { first, _ in first }
        families = Mutex([:])
    }

    /// Returns the series of a metric with certain labels; nil if the metric is not defined.
    private func series(_ name: String, _ dimensions: [(String, String)]) -> MetricSeries? {
        guard let definition = definitions[name] else { return nil }
        let labels = LabelSet(dimensions)
        return families.withLock { families in
            if let series = families[name]?[labels] { return series }
            let series = MetricSeries(definition.kind)
            families[name, default: [:]][labels] = series
            return series
        }
    }

    /// The exposition of all metrics (text format 0.0.4), sorted by name and by labels.
    package var text: String {
        let families = families.withLock { $0 }
        var text = ""
        for definition in definitions.values.sorted(by: { $0.name < $1.name }) {
            guard let series = families[definition.name], !series.isEmpty else { continue }
            text += "# HELP \(definition.name) \(LabelSet.escaped(definition.help, quotes: false))\n"
            text += "# TYPE \(definition.name) \(definition.kind.name)\n"
            for (labels, one) in series.sorted(by: { $0.key.text < $1.key.text }) {
                text += one.lines(named: definition.name, labels: labels)
            }
        }
        return text
    }

    package func makeCounter(label: String, dimensions: [(String, String)]) -> any CounterHandler {
        series(label, dimensions) ?? NOOPMetricsHandler.instance
    }

    package func makeMeter(label: String, dimensions: [(String, String)]) -> any MeterHandler {
        series(label, dimensions) ?? NOOPMetricsHandler.instance
    }

    package func makeRecorder(
        label: String,
        dimensions: [(String, String)],
        aggregate: Bool
    ) -> any RecorderHandler {
        series(label, dimensions) ?? NOOPMetricsHandler.instance
    }

    package func makeTimer(label: String, dimensions: [(String, String)]) -> any TimerHandler {
        series(label, dimensions) ?? NOOPMetricsHandler.instance
    }

    // The number of series is bounded by the definitions, so none is destroyed.
    package func destroyCounter(_ handler: any CounterHandler) {}
    package func destroyMeter(_ handler: any MeterHandler) {}
    package func destroyRecorder(_ handler: any RecorderHandler) {}
    package func destroyTimer(_ handler: any TimerHandler) {}
}

extension MetricDefinition.Kind {
    fileprivate var name: String {
        switch self {
        case .counter: "counter"
        case .gauge: "gauge"
        case .histogram: "histogram"
        }
    }
}
