/// Counts wrong codes, so that nobody can try many: after 20 within an hour the gate is closed until an owner opens it.
///
/// Kept, so that a restart opens nothing.
struct UserCodeAttemptLimiter: Hashable, Sendable, Codable {
    static let limit = 20
    static let window = 3_600

    private var failures: [MonotonicTime] = []
    private(set) var isClosed = false

    mutating func failed(at now: MonotonicTime) {
        failures.removeAll { now >= $0 + Self.window }
        failures.append(now)
        isClosed = isClosed || failures.count >= Self.limit
    }

    /// The clock was set back to this time: a failure in the future counts as one of now.
    mutating func clockWasSet(to now: MonotonicTime) { failures = failures.map { min($0, now) } }

    mutating func reopen() { self = UserCodeAttemptLimiter() }
}
