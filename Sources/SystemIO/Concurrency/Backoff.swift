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
