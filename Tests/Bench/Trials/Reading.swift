/// What one round found.
struct Reading: Sendable {
    let metric: Metric
    /// Nil where there is nothing to be compared, as with a forwarder that died.
    let value: Double?
    /// What the figure does not tell.
    let note: String?

    init(_ metric: Metric, _ value: Double?, note: String? = nil) {
        self.metric = metric
        self.value = value
        self.note = note
    }
}

/// The name of a figure and what it counts.
struct Metric: Hashable, Codable, Sendable {
    let name: String
    let unit: String

    init(_ name: String, _ unit: String) {
        self.name = name
        self.unit = unit
    }

    /// As a table's line begins.
    var title: String { unit.isEmpty ? name : "\(name), \(unit)" }
}
