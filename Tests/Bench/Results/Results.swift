/// Everything that a run found, in the order in which it was found.
struct Results: Codable, Sendable {
    private(set) var lines: [ResultLine] = []

    mutating func add(_ readings: [Reading], of kind: ForwarderKind, on bed: Bed.Kind, round: Int) {
        for reading in readings {
            change(bed, reading.metric) { $0.set(reading.value, of: kind, in: round, note: reading.note) }
        }
    }

    /// A round that ended with an error and gave no figure.
    mutating func add(failure: String, of kind: ForwarderKind, on bed: Bed.Kind, topic: Topic, round: Int) {
        change(bed, Metric("\(topic), rounds without a figure", "")) {
            $0.set(1, of: kind, in: round, note: failure)
        }
    }

    private mutating func change(_ bed: Bed.Kind, _ metric: Metric, _ body: (inout ResultLine) -> Void) {
        let index = lines.firstIndex { $0.bed == bed && $0.metric == metric } ?? lines.count
        if index == lines.count { lines.append(ResultLine(bed, metric)) }
        body(&lines[index])
    }
}
