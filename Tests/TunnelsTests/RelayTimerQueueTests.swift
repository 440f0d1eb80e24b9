import Testing

@testable import Tunnels

@Suite struct RelayTimerQueueTests {
    private let start = ContinuousClock.now

    private func look(_ index: Int, at milliseconds: Int) -> RelayTimerQueue.Look {
        RelayTimerQueue.Look(index: index, generation: UInt32(index) + 100, due: time(milliseconds))
    }

    private func time(_ milliseconds: Int) -> ContinuousClock.Instant { start + .milliseconds(milliseconds) }

    /// Everybody who is due by then.
    private func due(of looks: inout RelayTimerQueue, at milliseconds: Int) -> [Int] {
        var indices: [Int] = []
        while let look = looks.takeDue(by: time(milliseconds)) { indices.append(look.index) }
        return indices
    }

    @Test func `nobody is due where nobody waits`() {
        var looks = RelayTimerQueue()

        #expect(looks.next == nil)
        #expect(due(of: &looks, at: 1_000_000).isEmpty)
    }

    @Test func `nobody is looked at before the time, and at the time at the latest`() {
        var looks = RelayTimerQueue()
        looks.append(look(1, at: 25))

        #expect(looks.next == time(25))
        #expect(due(of: &looks, at: 24).isEmpty)
        #expect(looks.next == time(25))
        #expect(due(of: &looks, at: 25) == [1])
        #expect(looks.next == nil)
        #expect(due(of: &looks, at: 26).isEmpty)
    }

    @Test func `each has a time of its own, and is looked at once, in the order of coming`() {
        var looks = RelayTimerQueue()
        for (index, milliseconds) in [(7, 10), (3, 12), (5, 12), (1, 30)] {
            looks.append(look(index, at: milliseconds))
        }

        #expect(due(of: &looks, at: 11) == [7])
        #expect(looks.next == time(12))
        #expect(due(of: &looks, at: 29) == [3, 5])
        #expect(looks.next == time(30))
        looks.append(look(7, at: 54))
        #expect(due(of: &looks, at: 60) == [1, 7])
    }

    @Test func `a look tells of whom it is`() {
        var looks = RelayTimerQueue()
        looks.append(look(4, at: 1))

        let taken = looks.takeDue(by: time(1))

        #expect(taken?.index == 4 && taken?.generation == 104 && taken?.due == time(1))
    }

    @Test(arguments: [1, 100, 3_000])
    func `those who were looked at take no room, however many come after them`(waiting: Int) {
        var looks = RelayTimerQueue()
        for number in 0..<waiting { looks.append(look(number, at: number)) }

        var mostRoom = 0
        for number in 0..<20_000 {
            looks.append(look(waiting + number, at: waiting + number))
            #expect(looks.takeDue(by: time(number))?.index == number)
            mostRoom = max(mostRoom, looks.room)
        }

        #expect(mostRoom <= 2 * max(waiting, 1_024) + 2)
        #expect(due(of: &looks, at: 1_000_000) == Array(20_000..<20_000 + waiting))
        #expect(looks.room == 0)
    }
}
