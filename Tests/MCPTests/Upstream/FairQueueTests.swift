import Testing

@testable import MCP

@Suite struct FairQueueTests {
    @Test func `one holder has a part of the places, and another need not wait for it`() {
        var turns = FairQueue<Int>(places: 3, share: 2, queue: 2)

        let mayEnter = ["a", "a", "a", "b", "c"].map { turns.enter($0) }

        #expect(mayEnter == [true, true, false, true, false])
    }

    @Test func `of those who wait, each holder is next in turn, and its own keep their order`() {
        var turns = FairQueue<Int>(places: 1, share: 1, queue: 9)
        _ = turns.enter("z")
        for (one, holder) in [(1, "a"), (2, "a"), (3, "a"), (4, "b"), (5, "c"), (6, "b")] {
            turns.wait(one, for: holder)
        }

        var came: [Int] = []
        turns.leave("z")
        while let (one, holder) = turns.next() {
            came.append(one)
            let isMore = turns.next() != nil
            #expect(!isMore)
            turns.leave(holder)
        }

        #expect(came == [1, 4, 5, 2, 6, 3])
        #expect(turns.inside.isEmpty)
    }

    @Test func `a place is given to who may have it, past those whose holder has its part`() {
        var turns = FairQueue<Int>(places: 3, share: 2, queue: 2)
        for holder in ["a", "a", "b"] { _ = turns.enter(holder) }
        turns.wait(1, for: "a")
        turns.wait(2, for: "c")

        turns.leave("b")
        let next = [turns.next()?.0, turns.next()?.0]

        #expect(next == [2, nil])
    }

    @Test func `the queue of one holder is not another's`() {
        var turns = FairQueue<Int>(places: 3, share: 2, queue: 2)
        turns.wait(1, for: "a")
        turns.wait(2, for: "a")

        #expect(turns.isFull(for: "a"))
        #expect(!turns.isFull(for: "b"))
    }

    @Test func `who stops waiting takes no turn`() {
        var turns = FairQueue<Int>(places: 3, share: 2, queue: 2)
        turns.wait(1, for: "a")
        turns.wait(2, for: "b")

        turns.withdraw("a") { $0 == 1 }
        let next = [turns.next()?.0, turns.next()?.0]

        #expect(next == [2, nil])
    }
}
