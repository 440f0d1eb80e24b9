import Model
import Samples
import Testing

@testable import Apps

@Suite struct UpstreamSessionEventsTests {
    @Test(.timeLimit(.minutes(1)))
    func `the flood of one app waits once, and the report of another app follows it`() async {
        let events = UpstreamSessionEvents()
        for _ in 0..<100_000 { events.send(.change(.tools, "noisy")) }
        events.send(.connection("quiet"))

        let handled = await Self.handled(events, until: .connection("quiet")) { _ in }

        #expect(handled == [.change(.tools, "noisy"), .connection("quiet")])
    }

    @Test(.timeLimit(.minutes(1)))
    func `a report that arrives while the same one is handled is handled again`() async {
        let events = UpstreamSessionEvents()
        events.send(.change(.tools, "shop"))

        let handled = await Self.handled(events, until: .connection("shop")) { number in
            if number == 1 { for _ in 0..<2 { events.send(.change(.tools, "shop")) } }
            if number == 2 { events.send(.connection("shop")) }
        }

        #expect(handled == [.change(.tools, "shop"), .change(.tools, "shop"), .connection("shop")])
    }

    /// Handles reports until the last one, and calls the closure with the number of each.
    private static func handled(
        _ events: UpstreamSessionEvents,
        until last: UpstreamSessionEvent,
        _ onEvent: @escaping @Sendable (Int) -> Void
    ) async -> [UpstreamSessionEvent] {
        let (handled, continuation) = AsyncStream.makeStream(of: UpstreamSessionEvent.self)
        return await withTaskGroup(of: Void.self) { group in
            group.addTask {
                var count = 0
                await events.handleEach { event in
                    count += 1
                    onEvent(count)
                    continuation.yield(event)
                }
            }
            var all: [UpstreamSessionEvent] = []
            for await event in handled {
                all.append(event)
                if event == last { break }
            }
            group.cancelAll()
            return all
        }
    }
}
