import SystemIO

/// The pauses between attempts to reach an adb server.
///
/// They are short for a minute after the start and after the end of a server, which is usually started again at once.
/// Afterwards a machine without a server costs one refused connection each 10 s.
struct ADBServerPauses {
    private static let watchfulTime = Duration.seconds(60)
    private static let longestPause = Duration.seconds(10)
    /// The time after which a run of the server counts as successful. A server that closes each connection has none.
    private static let successfulTime = Duration.seconds(1)

    private var backoff = Backoff(from: .milliseconds(5), to: .seconds(1))

    /// Returns the pause after an attempt that lasted for this time.
    mutating func next(after attempt: Duration) -> Duration {
        if attempt >= Self.successfulTime { backoff.reset() }
        return backoff.total < Self.watchfulTime ? backoff.next() : Self.longestPause
    }
}

/// Limits the lists that are read from a server or a phone which sends one after the other.
struct ADBListBudget {
    /// The lists that are read at once. Plugging cables and starting apps cause fewer.
    private static let burst = 50
    /// Lists a second.
    private static let rate = 20

    private var last = ContinuousClock.now
    /// The lists that were read beyond the rate.
    private var ahead = 0.0

    /// Counts a list. Returns the pause before the next one; nil for none.
    mutating func pause(at now: ContinuousClock.Instant) -> Duration? {
        ahead = max(0, ahead - last.duration(to: now) / .seconds(1) * Double(Self.rate)) + 1
        last = now
        return ahead > Double(Self.burst) ? Duration.seconds(1) / Self.rate : nil
    }
}
