import Model

/// The lines that are one caller's alone: which there are, which of them are used, and which make room.
///
/// Such a line is a session at an app with what its caller can do for the app, so that the app may ask that caller and cannot
/// ask another one.
struct ClientSessionPool: Sendable {
    struct Key: Hashable, Sendable {
        let endpoint: EndpointID
        /// The same user or grant.
        let holder: String
        /// The same client of it, or clients that can do the same.
        let client: String
        /// Which of several, where it is not one client: each is for one request at a time.
        var number = 0
    }

    /// At one app, and altogether; how long one is kept that nobody uses.
    static let limitOfOne = 16
    static let limit = 64
    static let lifetime = Duration.seconds(600)

    private struct Entry: Sendable {
        let line: UpstreamSession
        var users = 0
        var lastUsed: Duration
    }

    private var entries: [Key: Entry] = [:]

    var isEmpty: Bool { entries.isEmpty }
    var count: Int { entries.count }

    /// Takes the line under that key, which is made if there is none; `leave` when done.
    ///
    /// - Parameters:
    ///   - key: Whose.
    ///   - isShared: Whether several requests may have it at the same time; else it is under a key of another number where
    ///     others have it.
    ///   - now: Since when.
    ///   - make: A new one.
    /// - Returns: The line, under which key it is, and what had to make room, to be retired.
    /// - Throws: `Trouble.busy` when there are too many, all of them used.
    mutating func enter(
        _ key: Key,
        isShared: Bool = true,
        at now: Duration,
        _ make: () -> UpstreamSession
    ) throws(Trouble) -> (key: Key, line: UpstreamSession, retired: [(EndpointID, UpstreamSession)]) {
        var (key, retired) = (key, [(EndpointID, UpstreamSession)]())
        while !isShared, let taken = entries[key], taken.users > 0 { key.number += 1 }
        if entries[key] == nil {
            if entries.keys.count(where: { $0.endpoint == key.endpoint }) >= Self.limitOfOne {
                retired.append(try makeRoom { $0.endpoint == key.endpoint })
            } else if entries.count >= Self.limit {
                retired.append(try makeRoom { _ in true })
            }
        }
        var entry = entries[key] ?? Entry(line: make(), lastUsed: now)
        entry.users += 1
        entry.lastUsed = now
        entries[key] = entry
        return (key, entry.line, retired)
    }

    mutating func leave(_ key: Key, _ line: UpstreamSession, at now: Duration) {
        guard entries[key]?.line === line else { return }
        entries[key]?.users -= 1
        entries[key]?.lastUsed = now
    }

    /// Takes out one that turned out to be of no use.
    mutating func remove(_ key: Key, _ line: UpstreamSession) {
        if entries[key]?.line === line { entries[key] = nil }
    }

    /// Takes out what nobody has used for long.
    mutating func expire(at now: Duration) -> [(EndpointID, UpstreamSession)] {
        let old = entries.filter { $0.value.users == 0 && now - $0.value.lastUsed >= Self.lifetime }
        for key in old.keys { entries[key] = nil }
        return old.map { ($0.key.endpoint, $0.value.line) }
    }

    /// Takes out everything of an endpoint that is forgotten.
    mutating func forget(_ endpoint: EndpointID) -> [UpstreamSession] {
        let all = entries.filter { $0.key.endpoint == endpoint }
        for key in all.keys { entries[key] = nil }
        return all.map(\.value.line)
    }

    private mutating func makeRoom(_ isMeant: (Key) -> Bool) throws(Trouble) -> (EndpointID, UpstreamSession) {
        let idle = entries.filter { $0.value.users == 0 && isMeant($0.key) }
        guard let oldest = idle.min(by: { $0.value.lastUsed < $1.value.lastUsed }) else { throw .busy }
        entries[oldest.key] = nil
        return (oldest.key.endpoint, oldest.value.line)
    }
}
