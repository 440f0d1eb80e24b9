/// Counts wrong tokens by where they came from, and says when to stop answering.
///
/// It slows only those that are wrong: a right token is let in from the same place, because on the loopback every user of
/// the machine is the same place, and one who guesses must not lock the others out. Secrets hold 131 bits and more, so
/// that it guards the machine's time and the audit log, not the secrets.
struct FailedAttemptLimiter: Sendable {
    static let limit = 10
    static let window = 60
    /// Places remembered at most; the oldest is forgotten.
    private static let places = 1_024

    private struct Place {
        var since: MonotonicTime
        var wrong: Int
    }

    private var wrong: [String: Place] = [:]

    /// Counts a wrong token.
    ///
    /// - Returns: Nil while there are few; else after how many seconds to try again. Only few are worth a line in the log.
    mutating func failed(from origin: RequestSource, at now: MonotonicTime) -> Int? {
        let name = Self.place(of: origin)
        var place = wrong[name] ?? Place(since: now, wrong: 0)
        if now >= place.since + Self.window { place = Place(since: now, wrong: 0) }
        place.wrong = min(place.wrong + 1, Self.limit + 1)
        if wrong[name] == nil, wrong.count >= Self.places,
            let oldest = wrong.min(by: { $0.value.since < $1.value.since })
        {
            wrong[oldest.key] = nil
        }
        wrong[name] = place
        guard place.wrong > Self.limit else { return nil }
        return max(1, Int((place.since + Self.window - now).components.seconds))
    }

    /// The clock was set back to this time: what began later begins now.
    mutating func clockWasSet(to now: MonotonicTime) {
        wrong = wrong.mapValues { Place(since: min($0.since, now), wrong: $0.wrong) }
    }

    /// A caller on the loopback chooses among the 16 million addresses of 127.0.0.0/8; all of them are one place.
    private static func place(of origin: RequestSource) -> String {
        if case .tcp = origin { "tcp" } else { origin.description }
    }
}
