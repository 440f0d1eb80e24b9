/// Statistics over the figures of several rounds.
extension Array<Double> {
    /// The median; nil if the array is empty.
    var median: Double? {
        let ordered = sorted()
        guard let high = ordered.dropFirst(count / 2).first else { return nil }
        return count.isMultiple(of: 2) ? (ordered[count / 2 - 1] + high) / 2 : high
    }

    /// Returns a percentile (nearest rank); nil if the array is empty.
    func percentile(_ share: Int) -> Double? {
        let rank = (Double(share) / 100 * Double(count)).rounded(.up)
        return sorted().dropFirst(Swift.max(0, Int(rank) - 1)).first
    }
}
