import Synchronization

/// A rate limiter for log lines about frequently changing objects: per object and in total.
final class LineLimiter<Key: Hashable & Sendable>: Sendable {
    /// The suppressed lines of expired windows.
    struct Expired: Sendable {
        var omitted: [(key: Key, count: Int)] = []
        /// Lines suppressed by the total limit.
        var beyondTotal = 0
        /// True if no window is open any more.
        var isLast = false
    }

    private struct Count {
        let since: ContinuousClock.Instant
        var lines = 0
        var omitted = 0
    }

    private struct State {
        var perKey: [Key: Count] = [:]
        var total: Count?
    }

    /// The maximum number of lines per window about one object, and about all objects together.
    static var limit: Int { 6 }
    static var totalLimit: Int { 300 }

    /// Yields when a window opens while no other is open.
    let begun: AsyncStream<Void>
    private let begin: AsyncStream<Void>.Continuation
    private let window: Duration
    private let state = Mutex(State())

    init(window: Duration) {
        self.window = window
        (begun, begin) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
    }

    /// Counts a line about an object.
    ///
    /// - Returns: True if the line may be logged.
    func admit(_ key: Key, at now: ContinuousClock.Instant) -> Bool {
        let (isAdmitted, isFirst) = state.withLock { state -> (Bool, Bool) in
            let isFirst = state.total == nil
            var (total, counter) = (state.total ?? Count(since: now), state.perKey[key] ?? Count(since: now))
            defer { (state.total, state.perKey[key]) = (total, counter) }
            guard counter.lines < Self.limit else {
                counter.omitted += 1
                return (false, isFirst)
            }
            guard total.lines < Self.totalLimit else {
                total.omitted += 1
                return (false, isFirst)
            }
            counter.lines += 1
            total.lines += 1
            return (true, isFirst)
        }
        if isFirst { begin.yield() }
        return isAdmitted
    }

    /// Closes the expired windows and returns their suppressed lines.
    func popExpired(at now: ContinuousClock.Instant) -> Expired {
        state.withLock { state in
            var expired = Expired()
            for (key, count) in state.perKey where now - count.since >= window {
                state.perKey[key] = nil
                if count.omitted > 0 { expired.omitted.append((key, count.omitted)) }
            }
            if let total = state.total, now - total.since >= window {
                expired.beyondTotal = total.omitted
                state.total = state.perKey.isEmpty ? nil : Count(since: now)
            }
            expired.isLast = state.total == nil
            return expired
        }
    }
}
