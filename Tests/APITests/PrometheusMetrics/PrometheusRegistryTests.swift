import API
import Foundation
import Metrics
import Model
import TestSupport
import Testing

@Suite struct PrometheusRegistryTests {
    private static let root = URL(filePath: TestSupportFolder.package)

    @Test func `counters and gauges have one line for each set of labels`() {
        let registry = PrometheusRegistry()
        Counter(label: "patchbay_refusals_total", dimensions: [("reason", "a \"b\"\\\n")], factory: registry)
            .increment(by: 2)
        Counter(label: "patchbay_refusals_total", dimensions: [("reason", "a \"b\"\\\n")], factory: registry)
            .increment()
        Gauge(label: "patchbay_devices", factory: registry).record(2)
        Gauge(label: "patchbay_devices", factory: registry).record(1.5)

        #expect(
            registry.text == """
                # HELP patchbay_devices Attached devices
                # TYPE patchbay_devices gauge
                patchbay_devices 1.5
                # HELP patchbay_refusals_total Requests to the API that were refused or failed, by the code of the problem
                # TYPE patchbay_refusals_total counter
                patchbay_refusals_total{reason="a \\"b\\"\\\\\\n"} 3

                """
        )
    }

    @Test func `a histogram counts each duration in its bucket and in all larger ones`() {
        let registry = PrometheusRegistry()
        let timer = Timer(label: "patchbay_call_hold_seconds", factory: registry)
        for nanoseconds in [50_000_000, 100_000_000, 700_000_000, 90_000_000_000] {
            timer.recordNanoseconds(Int64(nanoseconds))
        }

        let lines = registry.text.split(separator: "\n").filter { !$0.hasPrefix("#") }
        #expect(
            lines == [
                "patchbay_call_hold_seconds_bucket{le=\"0.1\"} 2", "patchbay_call_hold_seconds_bucket{le=\"0.5\"} 2",
                "patchbay_call_hold_seconds_bucket{le=\"1\"} 3", "patchbay_call_hold_seconds_bucket{le=\"2.5\"} 3",
                "patchbay_call_hold_seconds_bucket{le=\"5\"} 3", "patchbay_call_hold_seconds_bucket{le=\"10\"} 3",
                "patchbay_call_hold_seconds_bucket{le=\"20\"} 3", "patchbay_call_hold_seconds_bucket{le=\"60\"} 3",
                "patchbay_call_hold_seconds_bucket{le=\"+Inf\"} 4", "patchbay_call_hold_seconds_sum 90.85",
                "patchbay_call_hold_seconds_count 4",
            ],
            "\(lines)"
        )
    }

    @Test func `metrics of libraries are dropped`() {
        let registry = PrometheusRegistry()
        Counter(label: "http.requests", factory: registry).increment()

        #expect(registry.text.isEmpty)
    }

    @Test func `the dashboard and the document have exactly the metrics that exist`() throws {
        let names = Set(MetricDefinition.all.map(\.name))
        let dashboard = Self.root.appending(path: "docs/grafana-dashboard.json")
        let data = try Data(contentsOf: dashboard)
        #expect(try JSONSerialization.jsonObject(with: data) is [String: Any])
        for text in [
            String(decoding: data, as: UTF8.self),
            try String(contentsOf: Self.root.appending(path: "docs/metrics.md"), encoding: .utf8),
        ] {
            let used = text.matches(of: #/patchbay_[a-z_]+/#).map {
                String($0.output).replacing(#/_seconds_(bucket|count|sum)$/#, with: "_seconds")
            }
            #expect(Set(used) == names)
        }
    }

    @Test func `the document names every label`() throws {
        let text = try String(contentsOf: Self.root.appending(path: "docs/metrics.md"), encoding: .utf8)
        for metric in MetricDefinition.all {
            let row = text.split(separator: "\n").first { $0.hasPrefix("| `\(metric.name)`") }
            for label in metric.labels { #expect(row?.contains("`\(label)`") == true, "\(metric.name): \(label)") }
        }
    }
}
