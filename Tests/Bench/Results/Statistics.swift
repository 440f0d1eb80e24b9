/// What is said about the figures of several rounds.
extension Array<Double> {
    /// Half of the figures are not above it. Nil when there are none.
    var median: Double? {
        let ordered = sorted()
        guard let high = ordered.dropFirst(count / 2).first else { return nil }
        return count.isMultiple(of: 2) ? (ordered[count / 2 - 1] + high) / 2 : high
    }

    /// The figure that so many in a hundred do not exceed (nearest rank). Nil when there are none.
    func percentile(_ share: Int) -> Double? {
        let rank = (Double(share) / 100 * Double(count)).rounded(.up)
        return sorted().dropFirst(Swift.max(0, Int(rank) - 1)).first
    }
}
