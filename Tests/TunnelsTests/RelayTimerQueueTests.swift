import Testing

@testable import Tunnels

@Suite struct RelayTimerQueueTests {
    private let start = ContinuousClock.now

    private func entry(_ index: Int, at milliseconds: Int) -> RelayTimerQueue.Entry {
        RelayTimerQueue.Entry(index: index, generation: UInt32(index) + 100, due: time(milliseconds))
    }

    private func time(_ milliseconds: Int) -> ContinuousClock.Instant { start + .milliseconds(milliseconds) }

    /// Pops all timers that are due at a time.
    private func due(of timers: inout RelayTimerQueue, at milliseconds: Int) -> [Int] {
        var indices: [Int] = []
        while let entry = timers.popDue(by: time(milliseconds)) { indices.append(entry.index) }
        return indices
    }

    @Test func `an empty queue has no due timer`() {
        var timers = RelayTimerQueue()

        #expect(timers.next == nil)
        #expect(due(of: &timers, at: 1_000_000).isEmpty)
    }

    @Test func `a timer is due at its time and not before`() {
        var timers = RelayTimerQueue()
        timers.append(entry(1, at: 25))

        #expect(timers.next == time(25))
        #expect(due(of: &timers, at: 24).isEmpty)
        #expect(timers.next == time(25))
        #expect(due(of: &timers, at: 25) == [1])
        #expect(timers.next == nil)
        #expect(due(of: &timers, at: 26).isEmpty)
    }

    @Test func `each timer fires once, in the order of insertion`() {
        var timers = RelayTimerQueue()
        for (index, milliseconds) in [(7, 10), (3, 12), (5, 12), (1, 30)] {
            timers.append(entry(index, at: milliseconds))
        }

        #expect(due(of: &timers, at: 11) == [7])
        #expect(timers.next == time(12))
        #expect(due(of: &timers, at: 29) == [3, 5])
        #expect(timers.next == time(30))
        timers.append(entry(7, at: 54))
        #expect(due(of: &timers, at: 60) == [1, 7])
    }

    @Test func `a timer has the index and the generation of its connection`() {
        var timers = RelayTimerQueue()
        timers.append(entry(4, at: 1))

        let taken = timers.popDue(by: time(1))

        #expect(taken?.index == 4 && taken?.generation == 104 && taken?.due == time(1))
    }

    @Test(arguments: [1, 100, 3_000])
    func `fired timers do not accumulate in the storage`(waiting: Int) {
        var timers = RelayTimerQueue()
        for number in 0..<waiting { timers.append(entry(number, at: number)) }

        var mostStorage = 0
        for number in 0..<20_000 {
            timers.append(entry(waiting + number, at: waiting + number))
            #expect(timers.popDue(by: time(number))?.index == number)
            mostStorage = max(mostStorage, timers.storageCount)
        }

        #expect(mostStorage <= 2 * max(waiting, 1_024) + 2)
        #expect(due(of: &timers, at: 1_000_000) == Array(20_000..<20_000 + waiting))
        #expect(timers.storageCount == 0)
    }
}
