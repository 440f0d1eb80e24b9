import SystemIO

/// Decides whether a failed call is tried again, and when.
///
/// A write that the server may have executed is not repeated: another client may have changed the key since. The clients
/// of etcd itself have the same rule.
struct EtcdRetry {
    private let limit: Duration
    private let isRepeatable: Bool
    private let endpointCount: Int
    private var attempts = 0
    /// The number of last attempts in a row that ended with a refused certificate.
    private var refusals = 0
    private var pauses = Backoff(from: .milliseconds(50), to: .milliseconds(400))

    /// - Parameters:
    ///   - limit: The time limit of the whole call.
    ///   - isRepeatable: True for a call that may be executed twice.
    ///   - endpointCount: The number of servers. After each has failed, there is a pause.
    init(limit: Duration, isRepeatable: Bool, endpointCount: Int) {
        self.limit = limit
        self.isRepeatable = isRepeatable
        self.endpointCount = endpointCount
    }

    /// Returns the pause before the next attempt; nil if the call has failed.
    mutating func pause(after error: EtcdError, elapsed: Duration) -> Duration? {
        attempts += 1
        if case .refused = error { refusals += 1 } else { refusals = 0 }
        // Each server checks the certificate with its own files and clock, so every server is asked once.
        guard refusals < endpointCount else { return nil }
        guard error.isTransient, isRepeatable || error.isWithoutEffect else { return nil }
        let pause = attempts.isMultiple(of: endpointCount) ? pauses.next() : .zero
        return elapsed + pause < limit ? pause : nil
    }
}
