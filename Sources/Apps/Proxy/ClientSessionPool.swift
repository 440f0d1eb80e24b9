import Model

/// A pool of upstream sessions that each belong to one MCP client.
///
/// An app can send requests to its client (elicitation, sampling, roots). To reach the right client, each client with
/// such capabilities gets its own session at the app.
struct ClientSessionPool: Sendable {
    /// Identifies a session by app, owner and client.
    struct Key: Hashable, Sendable {
        let endpoint: EndpointID
        /// The user or grant.
        let holder: String
        /// The client, or a group of clients with the same capabilities.
        let client: String
        /// Distinguishes several sessions of a group. Each session serves one request at a time.
        var number = 0
    }

    /// At most 8 sessions of a holder at an app, 32 of all holders, and 128 in total. A holder without a session at the
    /// app always gets one, so no holder can use up the sessions. Idle sessions are closed after 600 s.
    static let limitPerHolder = 8
    static let limitPerApp = 32
    static let limit = 128
    static let lifetime = Duration.seconds(600)

    private struct Entry: Sendable {
        let session: UpstreamSession
        var users = 0
        var lastUsed: Duration
    }

    private var entries: [Key: Entry] = [:]

    var isEmpty: Bool { entries.isEmpty }
    var count: Int { entries.count }

    /// Returns the session for a key and creates it if needed. Call `checkIn` after use.
    ///
    /// - Parameters:
    ///   - key: The owner of the session.
    ///   - isShared: Whether several requests may use the session concurrently. If not, a session in use makes the pool
    ///     pick another number.
    ///   - now: The current time.
    ///   - make: Creates a session.
    /// - Returns: The key with its final number, the session, and the sessions that were evicted and must be closed.
    /// - Throws: `AppError.busy` if the limit is reached and all sessions are in use.
    mutating func checkOut(
        _ key: Key,
        isShared: Bool = true,
        at now: Duration,
        _ make: () -> UpstreamSession
    ) throws(AppError) -> (key: Key, session: UpstreamSession, evicted: [(EndpointID, UpstreamSession)]) {
        var (key, evicted) = (key, [(EndpointID, UpstreamSession)]())
        while !isShared, let taken = entries[key], taken.users > 0 { key.number += 1 }
        if entries[key] == nil, let session = try makeRoom(for: key) { evicted.append(session) }
        var entry = entries[key] ?? Entry(session: make(), lastUsed: now)
        entry.users += 1
        entry.lastUsed = now
        entries[key] = entry
        return (key, entry.session, evicted)
    }

    /// Returns a session to the pool after use.
    mutating func checkIn(_ key: Key, _ session: UpstreamSession, at now: Duration) {
        guard entries[key]?.session === session else { return }
        entries[key]?.users -= 1
        entries[key]?.lastUsed = now
    }

    /// Removes a session that cannot be used.
    mutating func remove(_ key: Key, _ session: UpstreamSession) {
        if entries[key]?.session === session { entries[key] = nil }
    }

    /// Removes the sessions with an idle time above `lifetime`.
    mutating func expire(at now: Duration) -> [(EndpointID, UpstreamSession)] {
        let old = entries.filter { $0.value.users == 0 && now - $0.value.lastUsed >= Self.lifetime }
        for key in old.keys { entries[key] = nil }
        return old.map { ($0.key.endpoint, $0.value.session) }
    }

    /// Removes all sessions of a deleted endpoint.
    mutating func removeAll(of endpoint: EndpointID) -> [UpstreamSession] {
        let all = entries.filter { $0.key.endpoint == endpoint }
        for key in all.keys { entries[key] = nil }
        return all.map(\.value.session)
    }

    /// Removes a session if a limit is reached.
    private mutating func makeRoom(for key: Key) throws(AppError) -> (EndpointID, UpstreamSession)? {
        let atApp = entries.keys.filter { $0.endpoint == key.endpoint }
        let own = atApp.count { $0.holder == key.holder }
        let evicted: (EndpointID, UpstreamSession)?
        if own >= Self.limitPerHolder {
            evicted = evictIdle { $0.endpoint == key.endpoint && $0.holder == key.holder }
        } else if atApp.count >= Self.limitPerApp {
            evicted = evictIdle { $0.endpoint == key.endpoint }
        } else if entries.count >= Self.limit {
            evicted = evictIdle { _ in true }
        } else {
            return nil
        }
        if evicted == nil, own > 0 { throw .busy }
        return evicted
    }

    /// Removes the longest idle session of the holder with the most candidates.
    private mutating func evictIdle(where isCandidate: (Key) -> Bool) -> (EndpointID, UpstreamSession)? {
        let idle = entries.filter { $0.value.users == 0 && isCandidate($0.key) }
        let counts = Dictionary(grouping: idle.keys, by: \.holder).mapValues(\.count)
        let oldest = idle.min { first, second in
            (-(counts[first.key.holder] ?? 0), first.value.lastUsed) < (
                -(counts[second.key.holder] ?? 0), second.value.lastUsed
            )
        }
        guard let oldest else { return nil }
        entries[oldest.key] = nil
        return (oldest.key.endpoint, oldest.value.session)
    }
}
