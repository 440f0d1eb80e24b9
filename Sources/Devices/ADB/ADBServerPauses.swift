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
