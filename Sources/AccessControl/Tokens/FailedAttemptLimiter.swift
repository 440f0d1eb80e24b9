import Crypto
package import FoundationEssentials
package import Model

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

/// Handling of malformed, leaked and denied tokens for the API, and access to the audit log.
extension AccessStore {
    /// Interval in seconds at which a requester polls its access request.
    package static let pollInterval = AccessRequestQueue.interval

    /// Counts a malformed token as a failed attempt. The error does not give the reason.
    ///
    /// - Returns: The error to throw, the same as for a rejected token.
    package func rejectMalformedToken(from source: RequestSource) throws -> AccessError {
        try reject(Token(random: .grant), because: "not a token", from: source, at: now())
    }

    /// Revokes the invite or grant of a token that leaked, because a client sent the token in a URL or a cookie.
    ///
    /// Requires the whole token; its ID alone revokes nothing.
    package func revokeLeaked(_ token: Token, from source: RequestSource) async throws {
        let now = now()
        let isValid: Bool
        switch token.kind {
        case .invite:
            isValid = state.invites[token.id].map { token.digest == $0.digest && $0.endReason == nil } ?? false
        case .grant:
            switch state.verify(token, from: source, at: now) {
            case .accepted: isValid = true
            case .reused(let change):
                try await endAndCommit(change)
                return
            case .refused: isValid = false
            }
        }
        guard isValid else {
            _ = try reject(token, because: "a token in a URL or a cookie", from: source, at: now)
            return
        }
        var change = try state.revoke(.one(token.id), by: .broker, from: source, at: now)
        for index in change.events.indices {
            change.events[index].detail = "it was sent in a URL or a cookie, where others can read it"
            change.events[index].alert = true
        }
        try await endAndCommit(change)
    }

    /// Records in the audit log that a caller was denied an owner-only operation. Limited to a few entries per minute
    /// and client.
    package func auditDenied(_ action: String, of caller: AuditActor, from source: RequestSource) throws {
        guard attemptLimiter.recordFailure(from: source, at: now()) == nil else { return }
        var event = AuditEvent(.refused, by: caller, from: source)
        event.detail = action
        var change = ChangeSet()
        change.events = [event]
        try commit(change)
    }

    /// Returns lines of the audit log, oldest first: those after a line number, or the last ones.
    package func auditLines(after number: Int?, limit: Int) async throws -> [Data] {
        try await auditReader.lines(after: number, limit: limit)
    }
}
