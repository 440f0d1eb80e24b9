import Model
import NIOCore

/// The connections of root and of the broker's user, which have no limit per user.
///
/// Idle ones make room for other clients, and event streams leave places for the requests that end. Part of
/// `ConnectionLimiter`.
struct OwnerConnections: Sendable {
    /// The maximum number of requests without an end of their own, such as event streams. Half of all connections, so
    /// that an owner's command always finds a place.
    static let maxStreams = ConnectionLimiter.maxConnections / 2

    /// The time in which a new connection can begin its first request, in milliseconds.
    static let firstRequestTime = Duration.milliseconds(250)

    private struct Entry: Sendable {
        let channel: any Channel
        var isUsed = false
        var openRequests = 0
        var isStream = false
        /// The time of the connection, or of the end of its last request.
        var idleSince: ContinuousClock.Instant

        func isIdle(at now: ContinuousClock.Instant) -> Bool {
            openRequests == 0 && (isUsed || now - idleSince >= OwnerConnections.firstRequestTime)
        }
    }

    private var entries: [ObjectIdentifier: Entry] = [:]
    private var streamCount = 0

    /// Returns whether a connection can be closed to make room.
    func hasIdle(at now: ContinuousClock.Instant) -> Bool { entries.values.contains { $0.isIdle(at: now) } }

    mutating func add(_ channel: any Channel, at now: ContinuousClock.Instant) {
        entries[ObjectIdentifier(channel)] = Entry(channel: channel, idleSince: now)
    }

    mutating func remove(_ channel: any Channel) {
        if entries.removeValue(forKey: ObjectIdentifier(channel))?.isStream == true { streamCount -= 1 }
    }

    mutating func requestBegan(on channel: any Channel) { entries[ObjectIdentifier(channel)]?.openRequests += 1 }

    mutating func requestEnded(on channel: any Channel, at now: ContinuousClock.Instant) {
        let id = ObjectIdentifier(channel)
        guard var entry = entries[id] else { return }
        entry.openRequests = max(0, entry.openRequests - 1)
        entry.isUsed = true
        entry.idleSince = now
        if entry.isStream { streamCount -= 1 }
        entry.isStream = false
        entries[id] = entry
    }

    /// Counts the request in progress as a stream.
    ///
    /// - Returns: False at the limit. Always true for the connection of another client.
    mutating func beginStream(on channel: any Channel) -> Bool {
        let id = ObjectIdentifier(channel)
        guard let entry = entries[id], !entry.isStream else { return true }
        guard streamCount < Self.maxStreams else { return false }
        streamCount += 1
        entries[id]?.isStream = true
        return true
    }

    /// Removes the connection that has been idle for the longest time; the caller closes it.
    mutating func evictIdle(at now: ContinuousClock.Instant) -> (any Channel)? {
        let longest = entries.lazy.filter { $0.value.isIdle(at: now) }.min { $0.value.idleSince < $1.value.idleSince }
        guard let longest else { return nil }
        entries[longest.key] = nil
        return longest.value.channel
    }
}

extension OwnerConnections {
    /// The refusal of a request without an end of its own, such as an event stream. They leave places for the owners'
    /// other requests.
    static let tooManyStreams = Problem(
        .limit,
        "the owners' programs have \(maxStreams) event streams and waiting requests open already",
        hint: "end some of these programs"
    )
}

extension APIRequest {
    /// Counts the request as one without an end of its own.
    func requireStreamPlace() throws(Problem) {
        if !limiter.beginStream(on: channel) { throw OwnerConnections.tooManyStreams }
    }
}
