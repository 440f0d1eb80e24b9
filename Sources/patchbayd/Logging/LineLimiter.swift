import Synchronization

/// Limits the lines of a log about things that change all the time: for each thing, and for all together.
final class LineLimiter<Key: Hashable & Sendable>: Sendable {
    /// What was left out in times that are over.
    struct Expired: Sendable {
        var omitted: [(key: Key, count: Int)] = []
        /// Left out because there were too many lines about all things together.
        var beyondTotal = 0
        /// No time is left that is not over.
        var isLast = false
    }

    private struct Count {
        let since: ContinuousClock.Instant
        var lines = 0
        var omitted = 0
    }

    private struct State {
        var things: [Key: Count] = [:]
        var total: Count?
    }

    /// Lines about one thing within the window, and about all things.
    static var limit: Int { 6 }
    static var totalLimit: Int { 300 }

    /// Tells when lines begin to be counted after a time without any.
    let begun: AsyncStream<Void>
    private let begin: AsyncStream<Void>.Continuation
    private let window: Duration
    private let state = Mutex(State())

    init(window: Duration) {
        self.window = window
        (begun, begin) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
    }

    /// Counts a line about a thing.
    ///
    /// - Returns: Whether it is to be written.
    func admit(_ key: Key, at now: ContinuousClock.Instant) -> Bool {
        let (isAdmitted, isFirst) = state.withLock { state -> (Bool, Bool) in
            let isFirst = state.total == nil
            var (total, thing) = (state.total ?? Count(since: now), state.things[key] ?? Count(since: now))
            defer { (state.total, state.things[key]) = (total, thing) }
            guard thing.lines < Self.limit else {
                thing.omitted += 1
                return (false, isFirst)
            }
            guard total.lines < Self.totalLimit else {
                total.omitted += 1
                return (false, isFirst)
            }
            thing.lines += 1
            total.lines += 1
            return (true, isFirst)
        }
        if isFirst { begin.yield() }
        return isAdmitted
    }

    /// Begins anew with the things whose time is over.
    func takeExpired(at now: ContinuousClock.Instant) -> Expired {
        state.withLock { state in
            var expired = Expired()
            for (key, count) in state.things where now - count.since >= window {
                state.things[key] = nil
                if count.omitted > 0 { expired.omitted.append((key, count.omitted)) }
            }
            if let total = state.total, now - total.since >= window {
                expired.beyondTotal = total.omitted
                state.total = state.things.isEmpty ? nil : Count(since: now)
            }
            expired.isLast = state.total == nil
            return expired
        }
    }
}
