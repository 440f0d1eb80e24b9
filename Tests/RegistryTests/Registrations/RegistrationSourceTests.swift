import Model
import Registry
import Synchronization
import TestSupport
import Testing

/// The source of registrations, with a clock that the test advances.
@Suite struct RegistrationSourceTests {
    private static let registrant = RegistrationTable.Registrant(
        grant: "G1",
        name: SanitizedText("phone"),
        address: "10.0.0.7"
    )

    private static func spec(_ number: Int) -> RegistrationSpec {
        RegistrationSpec(app: SanitizedText("app\(number)"), port: 9_000, kind: .mcp)
    }

    /// The events that the registry received, in order.
    private final class Received: Sendable {
        private let events = Mutex<[SightingEvent]>([])
        private let stream = AsyncStream.makeStream(of: SightingEvent.self)

        var all: [SightingEvent] { events.withLock { $0 } }

        func add(_ event: SightingEvent) {
            events.withLock { $0.append(event) }
            stream.continuation.yield(event)
        }

        func waitForLost() async {
            for await event in stream.stream { if case .lost = event { return } }
        }
    }

    @Test func `a registration without a heartbeat ends after 90 s`() async throws {
        let (clock, received) = (ManualClock(), Received())
        let source = RegistrationSource(kinds: [.mcp], clock: clock) { received.add($0) }
        try await withThrowingTaskGroup { group in
            group.addTask { try await source.run() }
            let entry = try await source.register(Self.spec(1), from: Self.registrant)
            #expect(received.all == [.seen(entry.sighting)])
            await clock.waitForSleepers()
            clock.advance(by: .seconds(60))
            try await source.heartbeat(entry.id, from: Self.registrant)
            clock.advance(by: .seconds(30))
            await clock.waitForSleepers()
            #expect(received.all.count == 1)
            clock.advance(by: .seconds(60))
            await received.waitForLost()
            await #expect(throws: RegistrationError.notFound(id: entry.id)) {
                try await source.heartbeat(entry.id, from: Self.registrant)
            }
            group.cancelAll()
        }
    }

    @Test func `each operation returns after the registry has its events, in the order of the operations`() async throws
    {
        let received = Received()
        let source = RegistrationSource(kinds: [.mcp]) { event in
            await Task.yield()
            received.add(event)
        }
        try await withThrowingTaskGroup { group in
            for number in 1...8 {
                group.addTask {
                    let entry = try await source.register(Self.spec(number), from: Self.registrant)
                    #expect(received.all.contains(.seen(entry.sighting)))
                    try await source.end(entry.id, of: "G1")
                    #expect(received.all.last(where: { $0.id == entry.sighting.id }) == .lost(entry.sighting.id))
                }
            }
            try await group.waitForAll()
        }
        #expect(received.all.count == 16)
    }
}

extension SightingEvent {
    fileprivate var id: Sighting.ID? {
        switch self {
        case .seen(let sighting): sighting.id
        case .lost(let id): id
        case .sourceLost, .sourceReconciled: nil
        }
    }
}
