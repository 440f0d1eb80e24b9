import Model

/// Counts wrong tokens per client, and decides when to reject further attempts.
///
/// Slows down wrong tokens only; a valid token is accepted from the same client. On loopback all users of the machine
/// are one client, and a guesser must not lock the others out. Secrets have at least 131 bits. Therefore this protects
/// CPU time and the audit log, not the secrets.
struct FailedAttemptLimiter: Sendable {
    /// Number of wrong tokens per client that are logged within `window` seconds; further ones are rejected unlogged.
    static let limit = 10
    static let window = 60
    /// Maximum number of tracked clients. The oldest is dropped first.
    private static let maxClients = 1_024

    private struct Client {
        var since: MonotonicTime
        var failures: Int
    }

    private var clients: [String: Client] = [:]

    /// Records a wrong token.
    ///
    /// - Returns: Nil within the limit; otherwise the number of seconds to wait. Callers log only attempts within the
    ///   limit.
    mutating func recordFailure(from source: RequestSource, at now: MonotonicTime) -> Int? {
        let key = Self.key(for: source)
        var client = clients[key] ?? Client(since: now, failures: 0)
        if now >= client.since + Self.window { client = Client(since: now, failures: 0) }
        client.failures = min(client.failures + 1, Self.limit + 1)
        if clients[key] == nil, clients.count >= Self.maxClients,
            let oldest = clients.min(by: { $0.value.since < $1.value.since })
        {
            clients[oldest.key] = nil
        }
        clients[key] = client
        guard client.failures > Self.limit else { return nil }
        return max(1, Int((client.since + Self.window - now).components.seconds))
    }

    /// Adjusts the times after the clock was set back. A later window begins now.
    mutating func clockWasSet(to now: MonotonicTime) {
        clients = clients.mapValues { Client(since: min($0.since, now), failures: $0.failures) }
    }

    /// Returns the client's key. A loopback client can use any of the 16 million addresses of 127.0.0.0/8, so all of
    /// them share one key.
    private static func key(for source: RequestSource) -> String {
        if case .tcp = source { "tcp" } else { source.description }
    }
}
