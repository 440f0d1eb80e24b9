import Testing

@testable import AccessControl

@Suite struct ClockTests {
    private let start = ClockReading(wall: 1_000_000, boot: 50_000)

    private func reading(wall: Int64, boot: Int64) -> ClockReading {
        ClockReading(wall: start.wall + wall, boot: start.boot + boot)
    }

    @Test func `the clock follows the boot clock while the wall clock is set back`() {
        var clock = MonotonicWallClock(highWater: nil, reading: start)

        clock.advance(to: reading(wall: 10_000, boot: 10_000))
        clock.advance(to: reading(wall: -600_000, boot: 20_000))

        #expect(clock.now.milliseconds == 1_020_000)
        #expect(clock.wallClockLag == .seconds(620))
    }

    @Test func `the clock follows a wall clock that is set forward, and stays when it is set back`() {
        var clock = MonotonicWallClock(highWater: nil, reading: start)

        clock.advance(to: reading(wall: 3_600_000, boot: 1_000))
        let ahead = clock.now
        clock.advance(to: reading(wall: 2_000, boot: 2_000))

        #expect(ahead.milliseconds == 4_600_000)
        #expect(clock.now.milliseconds == 4_601_000)
    }

    @Test func `time in suspend counts`() {
        var clock = MonotonicWallClock(highWater: nil, reading: start)
        clock.advance(to: reading(wall: 0, boot: 7_200_000))
        #expect(clock.now.milliseconds == 1_000_000 + 7_200_000)
    }

    @Test func `a restart begins at or after the saved high-water mark`() {
        let clock = MonotonicWallClock(highWater: MonotonicTime(milliseconds: 5_000_000), reading: start)
        #expect(clock.now.milliseconds == 5_000_000)
        #expect(clock.wallClockLag == .seconds(4_000))
    }

    @Test func `the clock never goes back, whatever the two clocks do`() {
        var clock = MonotonicWallClock(highWater: nil, reading: start)
        var last = clock.now
        for step in 0..<10_000 {
            let wall = Int64.random(in: -1_000_000_000...1_000_000_000)
            clock.advance(to: reading(wall: wall, boot: Int64(step) * 10 - Int64.random(in: 0...50)))
            #expect(clock.now >= last)
            last = clock.now
        }
    }

    @Test func `drift between the two clocks is not reported as lag`() {
        var clock = MonotonicWallClock(highWater: nil, reading: start)
        clock.advance(to: reading(wall: 59_000, boot: 60_000))
        #expect(clock.wallClockLag == .zero)
    }
}
