import FoundationEssentials
import Model
import TestSupport
import ServiceLifecycle
import Synchronization
import Testing

@testable import AccessControl

@Suite struct UseTests {
    @Test func `revoking returns only after everything under the grant and its children was cut`() async throws {
        try await withScratchFolder { scratch in
            let store = try Bench.store(in: scratch)
            let (parent, _) = try await store.grant(Permissions([.endpointCall, .inviteCreate], on: .all))
            let terms = InviteTerms(Permissions([.endpointCall], on: .all))
            let (child, _) = try await store.delegate(
                under: parent.id,
                to: SanitizedText("b"),
                terms,
                from: Bench.loopback
            )
            let (other, _) = try await store.grant()
            let cut = Mutex<[String]>([])
            for grant in [parent, child, other] {
                _ = try store.open(under: grant.id) {
                    for _ in 0..<100 { await Task.yield() }
                    cut.withLock { $0.append(grant.id) }
                }
            }

            let ended = try await store.revoke(.one(parent.id), by: Bench.owner, from: Bench.socket)

            #expect(Set(cut.withLock { $0 }) == [parent.id, child.id])
            #expect(Set(ended) == [parent.id, child.id])
            #expect(store.isLive(other.id))
        }
    }

    @Test func `what runs under a grant is cancelled with it, and has ended when revoking returns`() async throws {
        try await withScratchFolder { scratch in
            let store = try Bench.store(in: scratch)
            let (grant, _) = try await store.grant()
            let isRunning = Atomic(false)
            let (started, starting) = AsyncStream.makeStream(of: Void.self)
            async let body: Void = store.withUse(of: grant.id) {
                isRunning.store(true, ordering: .sequentiallyConsistent)
                starting.finish()
                try? await Task.sleep(for: .seconds(60))
                for _ in 0..<100 { await Task.yield() }
                isRunning.store(false, ordering: .sequentiallyConsistent)
            }
            for await _ in started {}

            try await store.revoke(.all, by: Bench.owner, from: Bench.socket)

            let isStillRunning = isRunning.load(ordering: .sequentiallyConsistent)
            #expect(!isStillRunning)
            do {
                try await body
                Issue.record("it was not cancelled")
            } catch {
                #expect(error as? AccessError == .refused)
            }
            await #expect(throws: AccessError.refused) { try await store.withUse(of: grant.id) {} }
        }
    }

    @Test func `revoking waits for the cut even when whoever revokes is cancelled`() async throws {
        try await withScratchFolder { scratch in
            let store = try Bench.store(in: scratch)
            let (grant, _) = try await store.grant()
            let (started, starting) = AsyncStream.makeStream(of: Void.self)
            let steps = Mutex<[String]>([])
            await withTaskGroup(of: Void.self) { group in
                group.addTask { @Sendable in
                    try? await store.withUse(of: grant.id) {
                        starting.finish()
                        try? await Task.sleep(for: .seconds(60))
                        for _ in 0..<1_000 { await Task.yield() }
                        steps.withLock { $0.append("over") }
                    }
                }
                for await _ in started {}
                group.addTask { @Sendable in
                    withUnsafeCurrentTask { $0?.cancel() }
                    _ = try? await store.revoke(.one(grant.id), by: Bench.owner, from: Bench.socket)
                    steps.withLock { $0.append("revoked") }
                }
            }
            let order = steps.withLock { $0 }
            #expect(order == ["over", "revoked"])
        }
    }

    @Test func `waiting for an expiry costs next to nothing`() async throws {
        try await withScratchFolder { scratch in
            let store = try AccessStore(in: scratch.path, logger: Bench.quiet)
            let (grant, _) = try await store.grant()
            _ = try store.open(under: grant.id) {}
            let clock = CountingClock()
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { try await ExpirationService(of: store, clock: clock).run() }
                try await Task.sleep(for: .milliseconds(1_300))
                group.cancelAll()
            }
            #expect((2...6).contains(clock.sleeps), "\(clock.sleeps) times")
        }
    }

    @Test func `a stream may revoke its own grant without waiting for itself`() async throws {
        try await withScratchFolder { scratch in
            let store = try Bench.store(in: scratch)
            let (grant, _) = try await store.grant()
            await #expect(throws: AccessError.refused) {
                try await store.withUse(of: grant.id) {
                    try await store.revoke(.one(grant.id), by: .grant(grant.id), from: Bench.loopback)
                    try await Task.sleep(for: .seconds(60))
                }
            }
        }
    }

    @Test(arguments: [false, true])
    func `what lives under a grant is cut within a second of its expiry`(byWallClock: Bool) async throws {
        try await withScratchFolder { scratch in
            let clock = TestClock()
            let store = try Bench.store(in: scratch, clock: clock)
            let (grant, _) = try await store.grant(lifetime: 3_600, idle: 3_600)
            let (cut, cutting) = AsyncStream.makeStream(of: Void.self)
            _ = try store.open(under: grant.id) { cutting.finish() }

            let took = try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { try await ExpirationService(of: store).run() }
                // Until it has looked for the first time.
                try await Task.sleep(for: .milliseconds(100))
                if byWallClock { clock.setWall(by: 3_600) } else { clock.pass(3_600) }
                let took = await ContinuousClock().measure { for await _ in cut {} }
                group.cancelAll()
                return took
            }

            #expect(took < .seconds(1))
            #expect(await store.grants.first?.end == .expired)
        }
    }

    @Test func `an expiry that comes sooner than was known is not slept through`() async throws {
        try await withScratchFolder { scratch in
            let store = try AccessStore(in: scratch.path, logger: Bench.quiet)
            let took = try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { try await ExpirationService(of: store).run() }
                try await Task.sleep(for: .milliseconds(100))
                let (grant, _) = try await store.grant(lifetime: 1)
                let took = try await ContinuousClock().measure {
                    try await eventually(within: .seconds(4), "the grant expires") {
                        await store.ledger.grants[grant.id]?.end == .expired
                    }
                }
                group.cancelAll()
                return took
            }
            #expect(took > .milliseconds(800) && took < .seconds(2))
        }
    }
}
