import TestSupport
import Testing

@testable import Devices

@Suite struct BackoffTests {
    @Test func `each pause is twice as long as the one before, up to the longest, until a reset`() {
        var backoff = Backoff.queueFull
        let pauses = (1...8).map { _ in backoff.next() }
        #expect(pauses == [1, 2, 4, 8, 16, 32, 50, 50].map { Duration.milliseconds($0) })

        backoff.reset()
        #expect(backoff.next() == .milliseconds(1))
    }

    @Test func `a pause sleeps on the clock and ends when cancelled`() async throws {
        var backoff = Backoff(from: .seconds(3_600), to: .seconds(3_600))
        let clock = RecordingClock(isImmediate: true)
        try await backoff.wait(clock: clock)
        let isChanged = await backoff.wait(orChangeOf: nil, clock: clock)
        #expect(!isChanged && clock.sleeps.count == 2)

        let waiting = Task {
            var backoff = Backoff(from: .seconds(3_600), to: .seconds(3_600))
            try await backoff.wait(clock: ContinuousClock())
        }
        waiting.cancel()
        await #expect(throws: CancellationError.self) { try await waiting.value }
    }
}
