import Synchronization

/// A rate limiter for log lines about frequently changing objects or clients: per object and in total.
package final class LineLimiter<Key: Hashable & Sendable>: Sendable {
    /// The suppressed lines of expired windows.
    package struct Expired: Sendable {
        package var omitted: [(key: Key, count: Int)] = []
        /// Lines suppressed by the total limit.
        package var beyondTotal = 0
        /// True if no window is open any more.
        package var isLast = false
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
    package static var limit: Int { 6 }
    package static var totalLimit: Int { 300 }

    /// Yields when a window opens while no other is open.
    private let begun: AsyncStream<Void>
    private let begin: AsyncStream<Void>.Continuation
    private let window: Duration
    private let state = Mutex(State())

    package init(window: Duration) {
        self.window = window
        (begun, begin) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
    }

    /// Counts a line about an object.
    ///
    /// - Returns: True if the line may be logged.
    package func admit(_ key: Key, at now: ContinuousClock.Instant) -> Bool {
        let (isAdmitted, isFirst) = state.withLock { state -> (Bool, Bool) in
            let isFirst = state.total == nil
            var (total, counter) = (state.total ?? Count(since: now), state.perKey[key] ?? Count(since: now))
            // Beyond the limit of all objects, no new object is remembered: a client may have any number of addresses.
            let isRemembered = state.perKey[key] != nil || total.lines < Self.totalLimit
            defer {
                state.total = total
                if isRemembered { state.perKey[key] = counter }
            }
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
    package func popExpired(at now: ContinuousClock.Instant) -> Expired {
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

    /// Passes the suppressed lines of each window to `report` at its end, until cancellation. No other event reports the
    /// end of a window.
    package func reportOmitted(clock: any Clock<Duration>, _ report: (Expired) -> Void) async {
        for await _ in begun {
            var isLast = false
            while !isLast {
                guard (try? await clock.sleep(for: window)) != nil else { return }
                let expired = popExpired(at: .now)
                report(expired)
                isLast = expired.isLast
            }
        }
    }
}
