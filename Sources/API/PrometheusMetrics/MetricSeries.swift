import CoreMetrics
import Model
import Synchronization

/// The value of one metric with certain labels. Callable from any thread.
final class MetricSeries: CounterHandler, MeterHandler, RecorderHandler, TimerHandler {
    private struct State {
        /// The value of a counter or gauge, or the sum of a histogram.
        var value = 0.0
        /// The number of observations up to each bound, without those of smaller bounds; the last is for larger ones.
        var buckets: [UInt64]
    }

    /// The upper bounds of a histogram's buckets; nil for other kinds.
    private let bounds: [Double]?
    private let state: Mutex<State>

    init(_ kind: MetricDefinition.Kind) {
        if case .histogram(let bounds) = kind { self.bounds = bounds } else { bounds = nil }
        state = Mutex(State(buckets: Array(repeating: 0, count: (bounds?.count ?? -1) + 1)))
    }

    func increment(by amount: Int64) { state.withLock { $0.value += Double(amount) } }
    func increment(by amount: Double) { state.withLock { $0.value += amount } }
    func decrement(by amount: Double) { state.withLock { $0.value -= amount } }
    func reset() { state.withLock { $0.value = 0 } }
    func set(_ value: Int64) { set(Double(value)) }
    func set(_ value: Double) { state.withLock { $0.value = value } }
    func record(_ value: Int64) { record(Double(value)) }
    func recordNanoseconds(_ duration: Int64) { record(Double(duration) / 1e9) }

    /// Adds an observation to a histogram. A gauge gets the value.
    func record(_ value: Double) {
        guard let bounds else { return set(value) }
        let index = bounds.firstIndex { value <= $0 } ?? bounds.count
        state.withLock { state in
            state.value += value
            state.buckets[index] += 1
        }
    }

    /// The lines of the text format.
    func lines(named name: String, labels: LabelSet) -> String {
        let state = state.withLock { $0 }
        guard let bounds else { return "\(name)\(labels.text) \(Self.number(state.value))\n" }
        var (text, count) = ("", UInt64(0))
        for (bound, added) in zip(bounds.map(Self.number) + ["+Inf"], state.buckets) {
            count += added
            text += "\(name)_bucket\(labels.adding("le", bound).text) \(count)\n"
        }
        text += "\(name)_sum\(labels.text) \(Self.number(state.value))\n"
        return text + "\(name)_count\(labels.text) \(count)\n"
    }

    /// A whole number has no fraction.
    private static func number(_ value: Double) -> String {
        value == value.rounded() && abs(value) < 1e15 ? "\(Int64(value))" : "\(value)"
    }
}

/// The labels of a series, in the order of their names.
struct LabelSet: Hashable, Sendable {
    private let labels: [[String]]

    init(_ dimensions: [(String, String)]) {
        labels = dimensions.sorted { $0.0 < $1.0 }.map { [$0.0, $0.1] }
    }

    /// Returns the labels with one more at the end.
    func adding(_ name: String, _ value: String) -> LabelSet {
        LabelSet(labels.map { ($0[0], $0[1]) } + [(name, value)])
    }

    /// `{name="value"}`, or nothing without a label.
    var text: String {
        if labels.isEmpty { return "" }
        return "{" + labels.map { "\($0[0])=\"\(Self.escaped($0[1], quotes: true))\"" }.joined(separator: ",") + "}"
    }

    /// Escapes a backslash and a line break, and in label values a quotation mark.
    static func escaped(_ text: String, quotes: Bool) -> String {
        // A Character may be a letter with a sign that joins it (U+0D4E before a quotation mark), so this replaces scalars.
        text.unicodeScalars.reduce(into: "") { escaped, scalar in
            switch scalar {
            case "\\": escaped += "\\\\"
            case "\n": escaped += "\\n"
            case "\"" where quotes: escaped += "\\\""
            default: escaped.unicodeScalars.append(scalar)
            }
        }
    }
}
