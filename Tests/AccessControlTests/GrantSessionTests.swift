import FoundationEssentials
import Model
import Samples
import Synchronization
import TestSupport
import Testing

@testable import AccessControl

@Suite(.scratchFolder) struct GrantSessionTests {
    private let scratch = ScratchFolder.current

    @Test func `revoke returns after all sessions of the grant and its children are closed`() async throws {
        let store = try Fixture.store(in: scratch)
        let (parent, _) = try await store.grant(Permissions([.endpointCall, .inviteCreate], on: .all))
        let (child, _) = try await store.child(of: parent, Permissions([.endpointCall], on: .all))
        let (other, _) = try await store.grant()
        let closed = Mutex<[String]>([])
        for grant in [parent, child, other] {
            _ = try store.live.register(under: grant.id) {
                for _ in 0..<100 { await Task.yield() }
                closed.withLock { $0.append(grant.id) }
            }
        }

        let ended = try await store.grants.revoke(parent.id)

        #expect(Set(closed.withLock { $0 }) == [parent.id, child.id])
        #expect(Set(ended) == [parent.id, child.id])
        #expect(store.live.isLive(other.id))
    }

    @Test func `a closure in a session is cancelled and has ended when revoke returns`() async throws {
        let store = try Fixture.store(in: scratch)
        let (grant, _) = try await store.grant()
        let isRunning = Atomic(false)
        let (started, starting) = AsyncStream.makeStream(of: Void.self)
        async let body: Void = store.live.withSession(under: grant.id) {
            isRunning.store(true, ordering: .sequentiallyConsistent)
            starting.finish()
            try? await Task.sleep(for: .seconds(60))
            for _ in 0..<100 { await Task.yield() }
            isRunning.store(false, ordering: .sequentiallyConsistent)
        }
        for await _ in started {}

        try await store.grants.revoke(.all)

        let isStillRunning = isRunning.load(ordering: .sequentiallyConsistent)
        #expect(!isStillRunning)
        do {
            try await body
            Issue.record("it was not cancelled")
        } catch { #expect(error as? AccessError == .refused) }
        await #expect(throws: AccessError.refused) { try await store.live.withSession(under: grant.id) {} }
    }

    @Test func `revoke waits for the sessions even when its task is cancelled`() async throws {
        let store = try Fixture.store(in: scratch)
        let (grant, _) = try await store.grant()
        let (started, starting) = AsyncStream.makeStream(of: Void.self)
        let steps = Mutex<[String]>([])
        await withTaskGroup(of: Void.self) { group in
            group.addTask { @Sendable in
                try? await store.live.withSession(under: grant.id) {
                    starting.finish()
                    try? await Task.sleep(for: .seconds(60))
                    for _ in 0..<1_000 { await Task.yield() }
                    steps.withLock { $0.append("over") }
                }
            }
            for await _ in started {}
            group.addTask { @Sendable in
                withUnsafeCurrentTask { $0?.cancel() }
                _ = try? await store.grants.revoke(grant.id)
                steps.withLock { $0.append("revoked") }
            }
        }
        let order = steps.withLock { $0 }
        #expect(order == ["over", "revoked"])
    }

    @Test func `waiting for an expiry wakes at most a few times a second`() async throws {
        let store = try AccessStore(in: scratch.path, logger: .quiet)
        let (grant, _) = try await store.grant()
        _ = try store.live.register(under: grant.id) {}
        let clock = RecordingClock()
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await ExpirationService(of: store, clock: clock).run() }
            try await Task.sleep(for: .milliseconds(1_300))
            group.cancelAll()
        }
        #expect((2...6).contains(clock.sleeps.count), "\(clock.sleeps.count) times")
    }

    @Test func `a session can revoke its own grant without a deadlock`() async throws {
        let store = try Fixture.store(in: scratch)
        let (grant, _) = try await store.grant()
        await #expect(throws: AccessError.refused) {
            try await store.live.withSession(under: grant.id) {
                try await store.grants.revoke(.one(grant.id), by: .grant(grant.id), from: Fixture.loopback)
                try await Task.sleep(for: .seconds(60))
            }
        }
    }

    @Test(arguments: [false, true])
    func `sessions are closed within a second of their grant's expiry`(byWallClock: Bool) async throws {
        let clock = TestClock()
        let store = try Fixture.store(in: scratch, clock: clock)
        let (grant, _) = try await store.grant(lifetime: 3_600, idle: 3_600)
        let (closed, closing) = AsyncStream.makeStream(of: Void.self)
        _ = try store.live.register(under: grant.id) { closing.finish() }

        let took = try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await ExpirationService(of: store).run() }
            // Waits for the service's first check.
            try await Task.sleep(for: .milliseconds(100))
            if byWallClock { clock.setWall(by: 3_600) } else { clock.pass(3_600) }
            let took = await ContinuousClock().measure { for await _ in closed {} }
            group.cancelAll()
            return took
        }

        #expect(took < .seconds(1))
        #expect(await store.grants.list.first?.endReason == .expired)
    }

    @Test func `a new earlier expiry wakes the service`() async throws {
        let store = try AccessStore(in: scratch.path, logger: .quiet)
        let took = try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await ExpirationService(of: store).run() }
            try await Task.sleep(for: .milliseconds(100))
            let (grant, _) = try await store.grant(lifetime: 1)
            let took = try await ContinuousClock().measure {
                try await eventually(within: .seconds(4), "the grant expires") {
                    await store.state.grants[grant.id]?.endReason == .expired
                }
            }
            group.cancelAll()
            return took
        }
        #expect(took > .milliseconds(800) && took < .seconds(2))
    }
}
