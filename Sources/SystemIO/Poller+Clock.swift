extension Poller {
    /// Returns when the descriptor is ready or so much time has passed by a clock.
    ///
    /// - Returns: False when the time was over first.
    /// - Throws: As `wait(for:of:)`.
    package func wait(
        for readiness: Readiness,
        of descriptor: CInt,
        atMost limit: Duration,
        by clock: any Clock<Duration>
    ) async throws -> Bool {
        if clock is PollerClock { return try await wait(for: readiness, of: descriptor, until: .now + limit) }
        // Another clock's time has to be waited for beside.
        return try await withDeadline(limit, clock: clock) { [self] in
            try await wait(for: readiness, of: descriptor)
            return true
        } ?? false
    }
}
