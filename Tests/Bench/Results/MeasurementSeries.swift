/// The figures of one forwarder in one metric, one per round.
struct MeasurementSeries: Hashable, Codable, Sendable {
    /// The figures by round; nil for a round without a figure.
    private(set) var rounds: [Double?] = []

    init(_ rounds: [Double?] = []) { self.rounds = rounds }

    /// Sets the figure of a round. Skipped rounds become nil, so that rounds stay aligned.
    mutating func set(_ value: Double?, in round: Int) {
        while rounds.count <= round { rounds.append(nil) }
        rounds[round] = value
    }

    var values: [Double] { rounds.compactMap(\.self) }
    var median: Double? { values.median }
    var lowest: Double? { values.min() }
    var highest: Double? { values.max() }

    /// Returns the ratios of figures of the same round, where both exist, so that a slow round affects both.
    func ratio(to other: MeasurementSeries) -> MeasurementSeries {
        MeasurementSeries(
            zip(rounds, other.rounds).map { mine, theirs in
                guard let mine, let theirs, theirs != 0 else { return nil }
                return mine / theirs
            }
        )
    }
}
