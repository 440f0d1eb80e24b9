import Synchronization
import Testing

@testable import SystemIO

@Suite struct AsyncSemaphoreTests {
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
        let gate = AsyncSemaphore(places: 3)
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
        let gate = AsyncSemaphore(places: 1)
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
}
