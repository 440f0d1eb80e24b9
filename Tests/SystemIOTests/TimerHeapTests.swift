import SystemIO
import Testing

@Suite struct TimerHeapTests {
    private let start = MonotonicInstant.now

    private func time(_ milliseconds: Int) -> MonotonicInstant { start + .milliseconds(milliseconds) }

    /// Pops all timers that are due at a time.
    private func due(of timers: inout TimerHeap, at milliseconds: Int) -> [UInt64] {
        var tokens: [UInt64] = []
        while let token = timers.popDue(at: time(milliseconds)) { tokens.append(token) }
        return tokens
    }

    @Test func `an empty heap has no due timer`() {
        var timers = TimerHeap()

        #expect(timers.earliest == nil)
        #expect(due(of: &timers, at: 1_000_000).isEmpty)
    }

    @Test func `a timer is due at its time and not before`() {
        var timers = TimerHeap()
        timers.add(1, until: time(25))

        #expect(timers.earliest == time(25))
        #expect(due(of: &timers, at: 24).isEmpty)
        #expect(due(of: &timers, at: 25) == [1])
        #expect(timers.earliest == nil)
        #expect(due(of: &timers, at: 26).isEmpty)
    }

    @Test func `each timer fires once, in the order of the deadlines`() {
        var timers = TimerHeap()
        for (token, milliseconds) in [(1, 30), (3, 12), (7, 10), (5, 13)] as [(UInt64, Int)] {
            timers.add(token, until: time(milliseconds))
        }

        #expect(due(of: &timers, at: 11) == [7])
        #expect(timers.earliest == time(12))
        #expect(due(of: &timers, at: 29) == [3, 5])
        timers.add(7, until: time(25))
        #expect(due(of: &timers, at: 60) == [7, 1])
    }

    @Test func `the first timer is one that is pending`() {
        var timers = TimerHeap()
        for number in 1...9 { timers.add(UInt64(number), until: time(10 * number)) }

        timers.dropEnded { $0 == 5 || $0 == 7 }
        #expect(timers.earliest == time(50))
        timers.dropEnded { $0 == 7 }
        #expect(timers.earliest == time(70))
        timers.dropEnded { _ in false }
        #expect(timers.earliest == nil)
        #expect(timers.epollTimeout == -1)
    }

    @Test(arguments: [1, 100, 3_000])
    func `fired timers do not accumulate, and pruned ones do not fire`(waiting: Int) {
        var timers = TimerHeap()
        for number in 0..<waiting { timers.add(UInt64(number), until: time(number)) }

        for number in 0..<2_000 {
            timers.add(UInt64(waiting + number), until: time(waiting + number))
            #expect(timers.popDue(at: time(number)) == UInt64(number))
        }
        #expect(timers.count == waiting)

        timers.prune { $0.isMultiple(of: 2) }
        #expect(due(of: &timers, at: 1_000_000) == (2_000..<2_000 + UInt64(waiting)).filter { $0.isMultiple(of: 2) })
        #expect(timers.count == 0)
    }
}
