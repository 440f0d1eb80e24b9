/// The continuous clock, with sleepers that the poller's thread wakes.
///
/// For time limits that nearly always end before their time: `ContinuousClock` would make and cancel a timer of the system
/// for each, which costs more than what it guards.
package struct PollerClock: Clock {
    package typealias Instant = ContinuousClock.Instant

    package init() {}

    package var now: Instant { ContinuousClock.now }
    /// What epoll_wait(2) counts in.
    package var minimumResolution: Duration { .milliseconds(1) }

    /// - Throws: `CancellationError`.
    package func sleep(until deadline: Instant, tolerance: Duration?) async throws {
        try await Poller.shared.sleep(until: deadline)
    }
}
