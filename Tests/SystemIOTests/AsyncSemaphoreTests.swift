import Synchronization
import Testing

@testable import SystemIO

@Suite struct AsyncSemaphoreTests {
    private final class ConcurrencyCounter: Sendable {
        private let counts = Mutex((now: 0, most: 0, total: 0))

        var most: Int { counts.withLock { $0.most } }
        var total: Int { counts.withLock { $0.total } }

        func begin() {
            counts.withLock { counts in
                counts.now += 1
                counts.total += 1
                counts.most = max(counts.most, counts.now)
            }
        }

        func end() { counts.withLock { $0.now -= 1 } }
    }

    @Test func `the semaphore never exceeds its permits, and serves every task`() async throws {
        let semaphore = AsyncSemaphore(permits: 3)
        let counter = ConcurrencyCounter()

        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<200 {
                group.addTask {
                    let permit = try await semaphore.acquire()
                    counter.begin()
                    await Task.yield()
                    counter.end()
                    permit.release()
                    permit.release()
                }
            }
            try await group.waitForAll()
        }

        #expect(counter.most <= 3)
        #expect(counter.total == 200)
    }

    @Test func `a cancelled waiter takes no permit`() async throws {
        let semaphore = AsyncSemaphore(permits: 1)
        let first = try await semaphore.acquire()

        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<20 {
                group.addTask { await #expect(throws: CancellationError.self) { _ = try await semaphore.acquire() } }
            }
            group.cancelAll()
        }
        first.release()

        let second = try await semaphore.acquire()
        second.release()
    }

    @Test func `a task waits until a permit is released`() async throws {
        let semaphore = AsyncSemaphore(permits: 2)
        let first = try await semaphore.acquire()
        let second = try await semaphore.acquire()

        let acquiredEarly = try await withThrowingTaskGroup(of: Bool.self) { group in
            group.addTask {
                _ = try await semaphore.acquire()
                return true
            }
            group.addTask {
                try await Task.sleep(for: .milliseconds(30))
                return false
            }
            let result = try await group.next()
            first.release()
            return result
        }

        #expect(acquiredEarly == false)
        second.release()
        let third = try #require(semaphore.tryAcquire())
        let fourth = try #require(semaphore.tryAcquire())
        #expect(semaphore.tryAcquire() == nil)
        withExtendedLifetime((third, fourth)) {}
    }

    @Test func `a promise keeps a result that was set before the wait`() async throws {
        let promise = Promise<Int>()

        #expect(promise.complete(.success(1)))
        #expect(!promise.complete(.success(2)))

        #expect(try await promise.value() == 1)
    }
}
