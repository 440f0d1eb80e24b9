import Synchronization
import Rig
import Testing

@testable import Devices

@Suite struct GateTests {
    private final class Room: Sendable {
        private let counts = Mutex((now: 0, most: 0, total: 0))

        var most: Int { counts.withLock { $0.most } }
        var total: Int { counts.withLock { $0.total } }

        func enter() {
            counts.withLock { counts in
                counts.now += 1
                counts.total += 1
                counts.most = max(counts.most, counts.now)
            }
        }

        func leave() { counts.withLock { $0.now -= 1 } }
    }

    @Test func `never more are inside than there are places, and all come through`() async throws {
        let gate = Gate(places: 3)
        let room = Room()

        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<200 {
                group.addTask {
                    let permit = try await gate.enter()
                    room.enter()
                    await Task.yield()
                    room.leave()
                    permit.giveBack()
                    permit.giveBack()
                }
            }
            try await group.waitForAll()
        }

        #expect(room.most <= 3)
        #expect(room.total == 200)
    }

    @Test func `one who stops waiting takes no place away`() async throws {
        let gate = Gate(places: 1)
        let first = try await gate.enter()

        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<20 {
                group.addTask {
                    await #expect(throws: CancellationError.self) { _ = try await gate.enter() }
                }
            }
            group.cancelAll()
        }
        first.giveBack()

        let second = try await gate.enter()
        second.giveBack()
    }

    @Test func `a promise settled before anybody waits is kept`() async throws {
        let promise = Promise<Int>()

        #expect(promise.settle(.success(1)))
        #expect(!promise.settle(.success(2)))

        #expect(try await promise.value() == 1)
    }

    @Test func `a budget refuses what finds no place in time, and gets back what is let go`() async throws {
        let budget = MuxBudget(limit: 2)
        var leases = [try await lease(budget), try await lease(budget)]

        await #expect(throws: UsbmuxError.limit(2)) { _ = try await lease(budget) }
        leases.removeLast()
        leases.append(try await lease(budget))

        #expect(budget.used == 2)
        leases = []
        #expect(budget.used == 0)
    }

    @Test func `whoever waits for a place of a budget gets the next that is free`() async throws {
        let budget = MuxBudget(limit: 1)
        var first: Permit? = try await lease(budget)

        async let second = lease(budget, within: .seconds(60))
        try await eventually("the second waits") { budget.waiting == 1 }
        _ = first
        first = nil

        let permit = try await second
        #expect(budget.used == 1)
        withExtendedLifetime(permit) {}
    }

    @Test func `as many wait for a budget as it has places, and one more is refused at once`() async throws {
        let budget = MuxBudget(limit: 1)
        let first = try await lease(budget)

        let waiting = Task { try await lease(budget, within: .seconds(60)) }
        try await eventually("the second waits") { budget.waiting == 1 }

        await #expect(throws: UsbmuxError.limit(1)) { _ = try await lease(budget, within: .seconds(60)) }
        withExtendedLifetime(first) {}
        waiting.cancel()
    }

    private func lease(_ budget: MuxBudget, within patience: Duration = .milliseconds(10)) async throws -> Permit {
        try await budget.lease(within: patience, clock: ContinuousClock())
    }
}
