import Crypto
package import FoundationEssentials
package import Model

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

/// What the doors need beside pairing itself: what to do with tokens that are none, or shown in the wrong place.
extension AccessStore {
    /// Seconds that an asker waits between two questions how its request stands.
    package static let pollInterval = AccessRequestQueue.interval

    /// Counts something that was shown as a token and has not even the form of one; it is never said what is wrong.
    ///
    /// - Returns: What to throw: the same as for a token that is not accepted.
    package func refuseGarbage(from origin: RequestSource) throws -> AccessError {
        try refuse(Token(random: .grant), "not a token", from: origin, at: now())
    }

    /// Ends what a token stands for, because it was put where others read along: an address, a cookie.
    ///
    /// Only for who has the whole token; its id alone ends nothing.
    package func expose(_ token: Token, from origin: RequestSource) async throws {
        let now = now()
        let isReal: Bool
        switch token.kind {
        case .invite:
            isReal = ledger.invites[token.id].map { token.digest == $0.digest && $0.end == nil } ?? false
        case .grant:
            switch ledger.judge(token, from: origin, at: now) {
            case .accepted: isReal = true
            case .reused(let change):
                try await close(by: change)
                return
            case .refused: isReal = false
            }
        }
        guard isReal else {
            _ = try refuse(token, "a token in an address or a cookie", from: origin, at: now)
            return
        }
        var change = try ledger.revoke(.one(token.id), by: .broker, from: origin, at: now)
        for index in change.events.indices {
            change.events[index].detail = "it was shown in an address or a cookie, where others read along"
            change.events[index].isAlert = true
        }
        try await close(by: change)
    }

    /// Writes into the log that somebody asked for what only an owner may do, in words of ours; a few times a minute, for
    /// each door.
    package func note(refusal what: String, of caller: AuditActor, from origin: RequestSource) throws {
        guard limiter.failed(from: origin, at: now()) == nil else { return }
        var event = AuditEvent(.refused, by: caller, from: origin)
        event.detail = what
        var change = ChangeSet()
        change.events = [event]
        try commit(change)
    }

    /// Lines of the audit log, the oldest first: those after a number, or the last ones.
    package func auditLines(after number: Int?, limit: Int) async throws -> [Data] {
        try await auditCheck.lines(after: number, limit: limit)
    }
}
