/// The result of one round.
struct Reading: Sendable {
    let metric: Metric
    /// The figure; nil if there is none, as with a forwarder that died.
    let value: Double?
    /// Additional information about the figure.
    let note: String?

    init(_ metric: Metric, _ value: Double?, note: String? = nil) {
        self.metric = metric
        self.value = value
        self.note = note
    }
}

/// The name of a figure and its unit.
struct Metric: Hashable, Codable, Sendable {
    let name: String
    let unit: String

    init(_ name: String, _ unit: String) {
        self.name = name
        self.unit = unit
    }

    /// The first cell of the metric's table line.
    var title: String { unit.isEmpty ? name : "\(name), \(unit)" }
}
