/// Exponential backoff: each pause is twice as long as the one before, up to the longest.
package struct Backoff: Sendable {
    private let shortest: Duration
    private let longest: Duration
    private var upcoming: Duration
    /// The sum of the pauses since the last reset.
    package private(set) var total = Duration.zero

    package init(from shortest: Duration, to longest: Duration) {
        self.shortest = shortest
        self.longest = longest
        upcoming = min(shortest, longest)
    }

    /// The pauses while a server's accept queue is full: 1 ms at first, 50 ms at most.
    ///
    /// The queue of usbmuxd 1.1.1 holds 5 connections. The kernel does not report when there is room again.
    package static var queueFull: Backoff { Backoff(from: .milliseconds(1), to: .milliseconds(50)) }

    /// Makes the next pause the shortest one, after a success.
    package mutating func reset() { self = Backoff(from: shortest, to: longest) }

    /// Returns the length of the next pause.
    package mutating func next() -> Duration {
        let pause = upcoming
        total += pause
        upcoming = min(upcoming * 2, longest)
        return pause
    }

    /// Sleeps for the next pause.
    ///
    /// - Throws: `CancellationError`.
    package mutating func wait(clock: any Clock<Duration>) async throws { try await clock.sleep(for: next()) }
}
