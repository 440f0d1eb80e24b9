/// The figures of one of the compared in one metric, a place for each round.
struct Series: Hashable, Codable, Sendable {
    /// Nil where the round gave no figure.
    private(set) var rounds: [Double?] = []

    init(_ rounds: [Double?] = []) { self.rounds = rounds }

    /// Rounds that were left out before this one count as without a figure, so that pairs stay pairs.
    mutating func set(_ value: Double?, in round: Int) {
        while rounds.count <= round { rounds.append(nil) }
        rounds[round] = value
    }

    var values: [Double] { rounds.compactMap(\.self) }
    var median: Double? { values.median }
    var lowest: Double? { values.min() }
    var highest: Double? { values.max() }

    /// The quotients of figures of the same round, where both gave one: what slowed the machine in that round slowed both.
    func ratio(to other: Series) -> Series {
        Series(
            zip(rounds, other.rounds).map { mine, theirs in
                guard let mine, let theirs, theirs != 0 else { return nil }
                return mine / theirs
            }
        )
    }
}
