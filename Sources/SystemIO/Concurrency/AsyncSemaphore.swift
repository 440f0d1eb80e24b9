import Synchronization

/// An asynchronous counting semaphore that serves waiting tasks in FIFO order.
package final class AsyncSemaphore: Sendable {
    private struct State {
        var free: Int
        var queue: [Promise<Void>] = []
    }

    /// The number of all permits.
    package let limit: Int
    private let state: Mutex<State>

    package init(permits: Int) {
        limit = permits
        state = Mutex(State(free: permits))
    }

    /// Returns a permit if one is free.
    package func tryAcquire() -> Permit? {
        let isFree = state.withLock { state in
            guard state.free > 0 else { return false }
            state.free -= 1
            return true
        }
        return isFree ? Permit(of: self) : nil
    }

    /// Waits for a permit. Throws `CancellationError`.
    package func acquire() async throws -> Permit {
        let waiter = state.withLock { state -> Promise<Void>? in
            if state.free > 0 {
                state.free -= 1
                return nil
            }
            let waiter = Promise<Void>()
            state.queue.append(waiter)
            return waiter
        }
        do {
            try await waiter?.value()
        } catch {
            state.withLock { $0.queue.removeAll { $0 === waiter } }
            throw error
        }
        return Permit(of: self)
    }

    fileprivate func returnPermit() {
        state.withLock { state in
            while !state.queue.isEmpty {
                // Cancelled waiters are skipped. Resuming under the lock only schedules the task.
                if state.queue.removeFirst().complete(.success(())) { return }
            }
            state.free += 1
        }
    }
}

/// A permit of an `AsyncSemaphore`, released at the latest on deallocation.
package final class Permit: Sendable {
    private let semaphore: AsyncSemaphore
    private let isReleased = Atomic(false)

    fileprivate init(of semaphore: AsyncSemaphore) { self.semaphore = semaphore }

    /// Returns the permit to the semaphore. Further calls have no effect.
    package func release() {
        if !isReleased.exchange(true, ordering: .acquiringAndReleasing) { semaphore.returnPermit() }
    }

    deinit { release() }
}
