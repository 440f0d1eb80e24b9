/// All results of a run in the order of measurement.
struct Results: Codable, Sendable {
    private(set) var lines: [ResultLine] = []

    mutating func add(_ readings: [Reading], of kind: ForwarderKind, on bed: TestBed.Kind, round: Int) {
        for reading in readings {
            change(bed, reading.metric) { $0.set(reading.value, of: kind, in: round, note: reading.note) }
        }
    }

    /// Records a round that ended with an error.
    mutating func add(failure: String, of kind: ForwarderKind, on bed: TestBed.Kind, topic: Topic, round: Int) {
        change(bed, Metric("\(topic), rounds without a figure", "")) {
            $0.set(1, of: kind, in: round, note: failure)
        }
    }

    private mutating func change(_ bed: TestBed.Kind, _ metric: Metric, _ body: (inout ResultLine) -> Void) {
        let index = lines.firstIndex { $0.bed == bed && $0.metric == metric } ?? lines.count
        if index == lines.count { lines.append(ResultLine(bed, metric)) }
        body(&lines[index])
    }
}
