import SystemIO
import Testing

@testable import Tunnels

@Suite struct RateMeterTests {
    private let start = MonotonicInstant.now

    @Test func `a steady stream reports its rate from the first second on`() {
        var meter = RateMeter(start: start)
        for tenth in 1...200 {
            let now = start + .milliseconds(tenth * 100)
            meter.add(1_000, at: now)
            let rate = meter.rate(at: now)
            #expect((9_000...12_500).contains(rate), "\(rate) after \(tenth) tenths")
        }
    }

    @Test func `a stopped stream reports a rate of zero after five seconds`() {
        var meter = RateMeter(start: start)
        meter.add(1_000_000, at: start + .seconds(10))

        #expect(meter.rate(at: start + .seconds(12)) > 0)
        #expect(meter.rate(at: start + .seconds(15)) == 0)
        #expect(meter.rate(at: start + .seconds(1_000_000)) == 0)
    }

    @Test func `a time before the last one does not change the rate`() {
        var meter = RateMeter(start: start)
        meter.add(500, at: start + .seconds(2))
        meter.add(500, at: start + .seconds(1))

        #expect(meter.rate(at: start + .seconds(2)) == 500)
    }
}
