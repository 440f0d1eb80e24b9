import FoundationEssentials
import Logging
import Model
import Samples
import ServiceLifecycle
import Synchronization
import SystemIO
import Testing

@testable import Registry
@testable import patchbayd

@Suite(.timeLimit(.minutes(1))) struct LineLimiterTests {
    private let window = Duration.seconds(60)

    @Test func `an object has six lines per window, and suppressed lines are counted`() {
        let limiter = LineLimiter<Int>(window: window)
        let start = ContinuousClock.now

        #expect((0..<100).count { _ in limiter.admit(1, at: start) } == 6)
        #expect(limiter.admit(2, at: start + .seconds(59)))

        let early = limiter.popExpired(at: start + .seconds(59))
        #expect(early.omitted.isEmpty && !early.isLast)
        let due = limiter.popExpired(at: start + window)
        #expect(due.omitted.map(\.key) == [1] && due.omitted.map(\.count) == [94] && !due.isLast)
        #expect(limiter.admit(1, at: start + window))
        #expect(limiter.popExpired(at: start + window * 3).isLast)
    }

    @Test func `all objects together have 300 lines per window`() {
        let limiter = LineLimiter<Int>(window: window)
        let start = ContinuousClock.now

        #expect((0..<1_000).count { limiter.admit($0, at: start) } == 300)

        let due = limiter.popExpired(at: start + window)
        #expect(due.omitted.isEmpty && due.beyondTotal == 700 && due.isLast)
    }

    @Test func `an advert that appears and disappears 200 times gives a few lines and one with the suppressed number`()
        async throws
    {
        let registry = EndpointRegistry()
        let lines = LogLines()
        let endpointLogger = EndpointLogger(of: registry, logger: lines.logger, window: .milliseconds(300))
        let sighting = Sighting.sample(
            "lab",
            source: .config,
            kind: .debug,
            isBundleID: false,
            routes: [.network("192.0.2.1", port: 4_000)]
        )
        await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await endpointLogger.run() }
            while await registry.subscriberCount == 0 { await Task.yield() }
            for _ in 0..<200 {
                await registry.apply(.seen(sighting))
                await registry.apply(.lost(sighting.id))
            }
            while !lines.texts.withLock({ $0.contains { $0.hasPrefix("endpoint changed often") } }) {
                await Task.yield()
            }
            await registry.finish()
            group.cancelAll()
        }
        let texts = lines.texts.withLock { $0 }
        #expect(texts.count < 20, "\(texts)")
        let omitted = texts.filter { $0.hasPrefix("endpoint changed often") }
        #expect(omitted.contains { $0.contains("lab") && $0.contains("changes not shown") })
    }
}
