import Model
import Testing

@Suite(.timeLimit(.minutes(1))) struct BroadcastTests {
    @Test func `every subscriber receives all elements in order, and the end of the stream`() async {
        let broadcast = Broadcast<Int>(slow: .ends(after: 10))
        let (one, other) = (broadcast.subscribe(), broadcast.subscribe(startingWith: 0))

        for number in 1...5 { broadcast.send(number) }
        broadcast.finish()

        #expect(await one.reduce(into: []) { $0.append($1) } == [1, 2, 3, 4, 5])
        #expect(await other.reduce(into: []) { $0.append($1) } == [0, 1, 2, 3, 4, 5])
        #expect(await broadcast.subscribe().reduce(0) { $0 + $1 } == 0)
        #expect(broadcast.subscriberCount == 0)
    }

    @Test(arguments: [Broadcast<Int>.SlowSubscriber.ends(after: 2), .keepsNewest(2)])
    func `a cancelled subscriber is removed at once`(rule: Broadcast<Int>.SlowSubscriber)
        async
    {
        let broadcast = Broadcast<Int>(slow: rule)
        for _ in 0..<100 { _ = broadcast.subscribe() }
        #expect(broadcast.subscriberCount == 0)

        let stream = broadcast.subscribe()
        let (started, start) = AsyncStream.makeStream(of: Void.self)
        await withTaskGroup(of: Void.self) { group in
            group.addTask { for await _ in stream { start.finish() } }
            broadcast.send(1)
            for await _ in started {}
            #expect(broadcast.subscriberCount == 1)
            group.cancelAll()
            await group.waitForAll()
        }
        #expect(broadcast.subscriberCount == 0)
    }

    @Test func `subscribers that are cancelled while elements are sent block nobody`() async {
        let broadcast = Broadcast<Int>(slow: .keepsNewest(1))
        await withTaskGroup(of: Void.self) { group in
            group.addTask { while !Task.isCancelled { broadcast.send(1) } }
            for _ in 0..<2 {
                group.addTask {
                    for _ in 0..<5_000 {
                        await withTaskGroup(of: Void.self) { group in
                            group.addTask { for await _ in broadcast.subscribe() {} }
                            await Task.yield()
                            group.cancelAll()
                        }
                    }
                }
            }
            for _ in 0..<2 { await group.next() }
            group.cancelAll()
        }
        #expect(broadcast.subscriberCount == 0)
    }

    @Test func `the stream of a slow subscriber ends after the buffered elements`() async {
        let broadcast = Broadcast<Int>(slow: .ends(after: 2))
        let stream = broadcast.subscribe()

        for number in 1...4 { broadcast.send(number) }

        #expect(broadcast.subscriberCount == 0)
        #expect(await stream.reduce(into: []) { $0.append($1) } == [1, 2])
    }

    @Test func `a slow subscriber with keepsNewest drops older elements and continues`() async {
        let broadcast = Broadcast<Int>(slow: .keepsNewest(1))
        let stream = broadcast.subscribe()

        for number in 1...4 { broadcast.send(number) }
        broadcast.finish()

        #expect(await stream.reduce(into: []) { $0.append($1) } == [4])
    }
}
