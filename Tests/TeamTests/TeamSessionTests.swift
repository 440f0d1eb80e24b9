import FoundationEssentials
import Model
import SystemIO
import TestSupport
import Testing

@testable import Team

@Suite(.timeLimit(.minutes(1))) struct TeamSessionTests {
    private let clock = ManualClock()
    private let store: TestStore

    init() { store = TestStore(InMemoryTeamStore(clock: clock)) }

    private func makeSession() -> TeamSession {
        TeamSession(store: store, clock: clock, now: { Values.date }, logger: Values.logger)
    }

    /// Advances the clock in steps, so that each timer runs at its time.
    private func advance(seconds: Int) async {
        for _ in 0..<seconds {
            await clock.waitForSleepers(2)
            clock.advance(by: .seconds(1))
        }
        await clock.waitForSleepers(2)
    }

    private func leases(_ session: TeamSession) -> AsyncStream<TeamSession.State>.Iterator {
        session.changes().makeAsyncIterator()
    }

    @Test func `a lease is renewed every 3 seconds, and nothing is written`() async throws {
        let session = makeSession()
        try await withRunning([session]) {
            await advance(seconds: 1)
            let revision = store.inner.revision

            await advance(seconds: 60)

            #expect(store.record.renewals == 20)
            #expect(store.record.grants == 1)
            #expect(store.record.writes.isEmpty)
            #expect(store.inner.revision == revision)
            #expect(session.currentLease != nil)
        }
    }

    @Test func `without a renewal the lease ends here after 9 seconds, before the registry ends it`() async throws {
        let session = makeSession()
        try await withRunning([session]) {
            await advance(seconds: 3)
            let lease = try #require(session.currentLease)
            var states = leases(session)
            #expect(await states.next() == .held(lease))
            _ = try await store.inner.write([.put(key: "a", value: [], sessionLease: lease.id)], if: nil)
            store.fail(with: TestStore.unreachable)

            await advance(seconds: 8)
            #expect(session.currentLease == lease)
            await clock.waitForSleepers(2)
            clock.advance(by: .seconds(1))

            #expect(session.currentLease == nil)
            #expect(await states.next() == .absent)
            #expect(try await store.inner.list("a").entries.count == 1)
            clock.advance(by: .seconds(1))
            #expect(try await store.inner.list("a").entries.isEmpty)
        }
    }

    @Test func `subscribers learn the end even while a renewal waits for its answer`() async throws {
        let session = makeSession()
        let gate = AsyncLatch()
        try await withRunning([session]) {
            await advance(seconds: 1)
            var states = leases(session)
            _ = await states.next()
            store.hold(behind: gate)

            await advance(seconds: 1)
            clock.advance(by: .seconds(1))
            try await eventually("the renewal waits") { store.heldCalls == 1 }
            for _ in 0..<6 {
                await clock.waitForSleepers(1)
                clock.advance(by: .seconds(1))
            }

            #expect(await states.next() == .absent)
            store.release()
        }
    }

    @Test func `the time of a renewal counts from its request`() async throws {
        let session = makeSession()
        let gate = AsyncLatch()
        try await withRunning([session]) {
            await advance(seconds: 2)
            store.hold(behind: gate)
            clock.advance(by: .seconds(1))
            try await eventually("the renewal waits") { store.heldCalls == 1 }
            for _ in 0..<5 {
                await clock.waitForSleepers(1)
                clock.advance(by: .seconds(1))
            }
            store.release()
            await clock.waitForSleepers(2)
            #expect(session.currentLease != nil)

            // The request was sent at 3 s.
            store.fail(with: TestStore.unreachable)
            clock.advance(by: .seconds(4))

            #expect(session.currentLease == nil)
        }
    }

    @Test func `an answer after the local end does not bring the lease back`() async throws {
        let session = makeSession()
        try await withRunning([session]) {
            await clock.waitForSleepers(2)
            let lease = try #require(session.currentLease)
            store.hold(behind: AsyncLatch())
            clock.advance(by: .seconds(3))
            try await eventually("the renewal waits") { store.heldCalls == 1 }
            clock.advance(by: .seconds(6))
            #expect(session.currentLease == nil)

            store.release()
            try await eventually("there is a new lease") { session.currentLease != nil }

            #expect(session.currentLease.map { $0.generation > lease.generation } == true)
        }
    }

    @Test func `a lease that the registry has ended is replaced at once, with a higher generation`() async throws {
        let session = makeSession()
        try await withRunning([session]) {
            await advance(seconds: 1)
            let first = try #require(session.currentLease)
            try await store.inner.revokeSessionLease(first.id)

            await advance(seconds: 2)
            try await eventually("there is a new lease") { session.currentLease.map { $0 != first } ?? false }

            let second = try #require(session.currentLease)
            #expect(second.id != first.id)
            #expect(second.generation > first.generation)
        }
    }

    @Test func `a reported end is followed by a new lease without a wait`() async throws {
        let session = makeSession()
        try await withRunning([session]) {
            await clock.waitForSleepers(2)
            let first = try #require(session.currentLease)
            var states = leases(session)
            _ = await states.next()

            session.reportEnd(of: first)

            while let state = await states.next() {
                if case .held(let lease) = state, lease.generation > first.generation { return }
            }
            Issue.record("there was no new lease")
        }
    }

    @Test func `an unreachable registry is asked again after 0.2 to 2 seconds`() async throws {
        store.fail(with: TestStore.unreachable)
        let session = makeSession()
        try await withRunning([session]) {
            await clock.waitForSleepers(1)
            #expect(session.failure == TestStore.unreachable)
            #expect(session.currentLease == nil)
            for pause in [200, 400, 800, 1_600, 2_000, 2_000] {
                let failures = store.record.failures
                await clock.waitForSleepers(1)
                clock.advance(by: .milliseconds(pause - 1))
                #expect(store.record.failures == failures)
                clock.advance(by: .milliseconds(1))
                try await eventually("the registry is asked") { store.record.failures > failures }
            }
            await clock.waitForSleepers(1)
            store.fail(with: nil)
            clock.advance(by: .seconds(2))

            await clock.waitForSleepers(2)
            #expect(session.currentLease != nil)
            #expect(session.failure == nil)
        }
    }

    @Test func `generations grow with a restart of the broker`() async throws {
        var generations: [UInt64] = []
        for minute in 0..<3 {
            let session = TeamSession(
                store: store,
                clock: clock,
                now: { Values.date.addingTimeInterval(Double(minute) * 60) },
                logger: Values.logger
            )
            let lease = try await withRunning([session]) {
                await clock.waitForSleepers(2)
                return session.currentLease
            }
            generations.append(try #require(lease?.generation))
        }

        #expect(generations == generations.sorted() && Set(generations).count == 3)
    }

    @Test func `a graceful stop revokes the lease, which deletes the entries`() async throws {
        let session = makeSession()
        try await withRunning([session]) {
            await clock.waitForSleepers(2)
            let lease = try #require(session.currentLease)
            _ = try await store.write([.put(key: "a", value: [], sessionLease: lease.id)], if: nil)
        }

        #expect(try await store.list("").entries.isEmpty)
        #expect(session.currentLease == nil)
    }
}
