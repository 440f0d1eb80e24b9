/// One metric on one test bed: a line of the table.
struct ResultLine: Codable, Sendable {
    let bed: TestBed.Kind
    let metric: Metric
    private(set) var series: [String: MeasurementSeries] = [:]
    /// The notes of each forwarder in the order of the rounds.
    private(set) var notes: [String: [String]] = [:]

    init(_ bed: TestBed.Kind, _ metric: Metric) {
        self.bed = bed
        self.metric = metric
    }

    mutating func set(_ value: Double?, of kind: ForwarderKind, in round: Int, note: String?) {
        series[kind.rawValue, default: MeasurementSeries()].set(value, in: round)
        guard let note else { return }
        notes[kind.rawValue, default: []].append(note)
    }

    /// The remarks below the table: the first note of each forwarder and the number of its notes.
    var remarks: [String] {
        notes.sorted { $0.key < $1.key }.compactMap { name, notes in
            guard let first = notes.first else { return nil }
            let count = series[name]?.rounds.count ?? 0
            return "\(metric.name): \(name), in \(notes.count) of \(count) rounds, at first: \(first)"
        }
    }

    func series(of kind: ForwarderKind) -> MeasurementSeries? { series[kind.rawValue] }

    func ratio(of kind: ForwarderKind, to reference: ForwarderKind) -> MeasurementSeries? {
        guard let mine = series(of: kind), let other = series(of: reference) else { return nil }
        let ratio = mine.ratio(to: other)
        return ratio.values.isEmpty ? nil : ratio
    }
}
