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
            routes: [.network(NetworkRoute(address: "10.0.0.1", port: port))]
        )
    }

    private func drain(_ queue: SightingQueue) async -> [SightingEvent] {
        queue.finish()
        var events: [SightingEvent] = []
        for await event in queue.events { events.append(event) }
        return events
    }

    @Test func `events are delivered in order, and the stream ends after the last`() async {
        let queue = SightingQueue()
        let sent: [SightingEvent] = [.seen(sighting("a")), .seen(sighting("b")), .sourceReconciled(.bonjour)]
        for event in sent { queue.send(event) }

        #expect(await drain(queue) == sent)
    }

    @Test func `a slow consumer gets the last state of each sighting once`() async {
        let queue = SightingQueue()
        for port in UInt16(1)...1_000 { queue.send(.seen(sighting("a", port: port))) }

        #expect(await drain(queue) == [.seen(sighting("a", port: 1_000))])
    }

    @Test func `a sighting that ended before delivery is dropped, and a delivered one is reported as lost`() async {
        let queue = SightingQueue()
        queue.send(.seen(sighting("a")))
        #expect(await queue.next() == .seen(sighting("a")))
        queue.send(.seen(sighting("b")))
        queue.send(.lost(sighting("b").id))
        queue.send(.lost(sighting("a").id))

        #expect(await drain(queue) == [.lost(sighting("a").id)])
    }

    @Test func `losing the source discards pending events`() async {
        let queue = SightingQueue()
        queue.send(.seen(sighting("a")))
        queue.send(.sourceLost(.bonjour))
        queue.send(.seen(sighting("a", port: 2)))
        queue.send(.sourceReconciled(.bonjour))

        #expect(
            await drain(queue) == [.sourceLost(.bonjour), .seen(sighting("a", port: 2)), .sourceReconciled(.bonjour)]
        )
    }

    @Test func `a waiting consumer gets the next event`() async {
        let queue = SightingQueue()
        async let next = queue.next()

        queue.send(.seen(sighting("a")))

        #expect(await next == .seen(sighting("a")))
    }

    @Test func `a cancelled consumer stops waiting`() async {
        let queue = SightingQueue()
        let ended = await withTaskGroup(of: SightingEvent?.self) { group in
            group.addTask { await queue.next() }
            group.cancelAll()
            return await group.next() == .some(nil)
        }

        #expect(ended)
    }
}
