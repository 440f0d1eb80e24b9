import SystemIO
import TestSupport
import Testing

@testable import Devices

@Suite struct UsbmuxdBackoffTests {
    @Test func `the pauses while the accept queue is full are 1 ms to 50 ms`() {
        var backoff = Backoff.queueFull
        let pauses = (1...8).map { _ in backoff.next() }
        #expect(pauses == [1, 2, 4, 8, 16, 32, 50, 50].map { Duration.milliseconds($0) })
    }

    @Test func `a pause without a watched directory sleeps on the clock`() async {
        var backoff = Backoff(from: .seconds(3_600), to: .seconds(3_600))
        let clock = RecordingClock(isImmediate: true)
        let isChanged = await backoff.wait(orChangeOf: nil, clock: clock)
        #expect(!isChanged && clock.sleeps.count == 1)
    }
}
