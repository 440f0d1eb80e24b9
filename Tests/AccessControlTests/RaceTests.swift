import FoundationEssentials
import Model
import Synchronization
import TestSupport
import Testing

@testable import AccessControl

/// A resource that can be spent once.
private protocol Spender: Sendable {
    func spend(_ number: Int, by racer: Int) async -> Bool
}

/// A wrong implementation: it checks, waits, and then writes. During the wait the actor runs the next caller.
private actor CheckThenWrite: Spender {
    private var spent: Set<Int> = []

    func spend(_ number: Int, by racer: Int) async -> Bool {
        guard !spent.contains(number) else { return false }
        await Task.yield()
        spent.insert(number)
        return true
    }
}

private struct StoreSpender: Spender {
    let store: AccessStore
    let invites: [Token]

    func spend(_ number: Int, by racer: Int) async -> Bool {
        let name = "\(racer)/\(number)"
        return (try? await store.invites.redeem(invites[number], as: name)) != nil
    }
}

private final class Count: Sendable {
    private let number = Mutex(0)
    var value: Int { number.withLock { $0 } }
    func add(_ difference: Int) { number.withLock { $0 += difference } }
}

@Suite(.scratchFolder) struct RaceTests {
    private let scratch = ScratchFolder.current
    private static let racers = 50

    /// Lets every racer try every resource.
    private func race(_ spender: some Spender, count: Int) async -> Int {
        await withTaskGroup(of: Int.self) { group in
            for racer in 0..<Self.racers {
                group.addTask {
                    var won = 0
                    for step in 0..<count where await spender.spend((step + racer) % count, by: racer) { won += 1 }
                    return won
                }
            }
            return await group.reduce(0, +)
        }
    }

    @Test func `concurrent redemptions give exactly one grant for each invite`() async throws {
        let count = Scale.pick(short: 400, soak: 20_000)
        let store = try Fixture.store(in: scratch)
        var invites: [Token] = []
        for _ in 0..<count {
            invites.append(try await store.invites.create().1)
        }

        let won = await race(StoreSpender(store: store, invites: invites), count: count)

        #expect(won == count)
        #expect(await store.grants.list.count == count)
        #expect(Set(await store.grants.list.compactMap(\.invite)).count == count)
        #expect(try await store.verifyAudit().firstInvalidEntry == nil)
    }

    @Test func `the race detects a store that checks first and writes later`() async {
        // One race may pass by luck, but a hundred do not.
        var won = 400
        for _ in 0..<100 where won == 400 { won = await race(CheckThenWrite(), count: 400) }

        #expect(won > 400)
    }

    @Test func `no session survives a concurrent revocation of its grant`() async throws {
        let store = try Fixture.store(in: scratch)
        let rounds = Scale.pick(short: 1_250, soak: 12_500)
        let openers = 8
        let survivors = Count()
        let opened = Count()
        for round in 0..<rounds {
            let (grant, _) = try await store.grant(to: "\(round)")
            let alive = Count()
            let (begun, ended) = (Count(), Count())
            await withDiscardingTaskGroup { group in
                for opener in 0..<openers {
                    group.addTask {
                        // Registering does not wait, but revoking hops to the store's thread. Without these delays
                        // all registrations would come first.
                        if opener > 0 { while begun.value == 0 { await Task.yield() } }
                        if opener == openers - 1 { while ended.value == 0 { await Task.yield() } }
                        for _ in 0..<(round + opener) % 5 * opener { await Task.yield() }
                        alive.add(1)
                        let use = try? store.live.register(under: grant.id) { alive.add(-1) }
                        if use == nil {
                            alive.add(-1)
                        } else {
                            opened.add(1)
                        }
                    }
                }
                group.addTask {
                    begun.add(1)
                    _ = try? await store.grants.revoke(grant.id)
                    ended.add(1)
                }
            }
            survivors.add(alive.value)
        }

        let alive = survivors.value
        #expect(alive == 0)
        // Both orders must occur; otherwise nothing was tested.
        let count = opened.value
        #expect(count > 0 && count < rounds * openers, "\(count) of \(rounds * openers) were opened")
    }
}
