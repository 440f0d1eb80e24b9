import SystemIO
import TestSupport
import Testing

@Suite struct BackoffTests {
    @Test func `each pause is twice as long as the one before, up to the longest, until a reset`() {
        var backoff = Backoff(from: .milliseconds(1), to: .milliseconds(50))
        let pauses = (1...8).map { _ in backoff.next() }
        #expect(pauses == [1, 2, 4, 8, 16, 32, 50, 50].map { Duration.milliseconds($0) })
        #expect(backoff.total == .milliseconds(163))

        backoff.reset()
        #expect(backoff.total == .zero)
        #expect(backoff.next() == .milliseconds(1))
    }

    @Test func `the first pause is not longer than the longest`() {
        var backoff = Backoff(from: .seconds(2), to: .seconds(1))
        #expect(backoff.next() == .seconds(1))
    }

    @Test func `a pause sleeps on the clock and ends when cancelled`() async throws {
        var backoff = Backoff(from: .seconds(3_600), to: .seconds(3_600))
        let clock = RecordingClock(isImmediate: true)
        try await backoff.wait(clock: clock)
        #expect(clock.sleeps.count == 1)

        let waiting = Task {
            var backoff = Backoff(from: .seconds(3_600), to: .seconds(3_600))
            try await backoff.wait(clock: ContinuousClock())
        }
        waiting.cancel()
        await #expect(throws: CancellationError.self) { try await waiting.value }
    }
}
