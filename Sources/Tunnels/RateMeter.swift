/// How many bytes a second there were of late: the mean of the last five seconds, the running one included.
struct RateMeter {
    private static let seconds = 5

    private let start: ContinuousClock.Instant
    /// What came in each of the last seconds, by the second's number.
    private var counts = [UInt64](repeating: 0, count: seconds)
    private var newest: Int64 = 0

    init(start: ContinuousClock.Instant) { self.start = start }

    mutating func add(_ count: UInt64, at now: ContinuousClock.Instant) {
        advance(to: now)
        counts[place(of: newest)] &+= count
    }

    /// Bytes per second.
    mutating func rate(at now: ContinuousClock.Instant) -> UInt64 {
        advance(to: now)
        let (second, attoseconds) = (now - start).components
        let fraction = Double(attoseconds) / 1e18
        // Whoever began half a second ago is not measured by five.
        let span = max(Double(min(second, Int64(Self.seconds) - 1)) + fraction, 0.1)
        return UInt64(Double(counts.reduce(0, &+)) / span)
    }

    /// Forgets what is too long ago.
    private mutating func advance(to now: ContinuousClock.Instant) {
        let second = (now - start).components.seconds
        guard second > newest else { return }
        for gone in max(newest + 1, second - Int64(Self.seconds) + 1)...second { counts[place(of: gone)] = 0 }
        newest = second
    }

    private func place(of second: Int64) -> Int { Int(second % Int64(Self.seconds)) }
}
