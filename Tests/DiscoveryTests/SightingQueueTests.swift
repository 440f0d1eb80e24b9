import Model
import Testing

@testable import Discovery

@Suite struct SightingQueueTests {
    private func sighting(_ name: String, port: UInt16 = 1) -> Sighting {
        Sighting(
            id: key(name).id,
            kind: .debug,
            app: SanitizedText(name),
            appIsBundleID: false,
            name: SanitizedText(name),
            routes: [.lan(LANRoute(address: "10.0.0.1", port: port))]
        )
    }

    private func drain(_ feed: SightingQueue) async -> [SightingEvent] {
        feed.finish()
        var events: [SightingEvent] = []
        for await event in feed.events { events.append(event) }
        return events
    }

    @Test func `events come in order and the stream ends after the last`() async {
        let feed = SightingQueue()
        let sent: [SightingEvent] = [.seen(sighting("a")), .seen(sighting("b")), .sourceReconciled(.bonjour)]
        for event in sent { feed.send(event) }

        #expect(await drain(feed) == sent)
    }

    @Test func `a slow follower gets the last state of each sighting, once`() async {
        let feed = SightingQueue()
        for port in UInt16(1)...1_000 { feed.send(.seen(sighting("a", port: port))) }

        #expect(await drain(feed) == [.seen(sighting("a", port: 1_000))])
    }

    @Test func `what came and went unseen is not told, what was told is taken back`() async {
        let feed = SightingQueue()
        feed.send(.seen(sighting("a")))
        #expect(await feed.next() == .seen(sighting("a")))
        feed.send(.seen(sighting("b")))
        feed.send(.lost(sighting("b").id))
        feed.send(.lost(sighting("a").id))

        #expect(await drain(feed) == [.lost(sighting("a").id)])
    }

    @Test func `losing the source makes what waits void`() async {
        let feed = SightingQueue()
        feed.send(.seen(sighting("a")))
        feed.send(.sourceLost(.bonjour))
        feed.send(.seen(sighting("a", port: 2)))
        feed.send(.sourceReconciled(.bonjour))

        #expect(
            await drain(feed) == [
                .sourceLost(.bonjour), .seen(sighting("a", port: 2)), .sourceReconciled(.bonjour),
            ]
        )
    }

    @Test func `a follower that waits gets the event when it comes`() async {
        let feed = SightingQueue()
        async let next = feed.next()

        feed.send(.seen(sighting("a")))

        #expect(await next == .seen(sighting("a")))
    }

    @Test func `a cancelled follower is let go`() async {
        let feed = SightingQueue()
        let ended = await withTaskGroup(of: SightingEvent?.self) { group in
            group.addTask { await feed.next() }
            group.cancelAll()
            return await group.next() == .some(nil)
        }

        #expect(ended)
    }
}
