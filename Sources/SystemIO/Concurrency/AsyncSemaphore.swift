import Synchronization

/// Lets a number of tasks through at a time, the others in the order in which they came.
package final class AsyncSemaphore: Sendable {
    private struct State {
        var free: Int
        var queue: [Promise<Void>] = []
    }

    private let state: Mutex<State>

    package init(places: Int) { state = Mutex(State(free: places)) }

    /// Places that nobody has.
    package var free: Int { state.withLock { $0.free } }

    /// How many wait for a place.
    package var waiting: Int { state.withLock { $0.queue.count } }

    /// A place, if one is free.
    package func enterNow() -> Permit? {
        let isFree = state.withLock { state in
            guard state.free > 0 else { return false }
            state.free -= 1
            return true
        }
        return isFree ? Permit(of: self) : nil
    }

    /// Waits for a place. Throws `CancellationError`.
    package func enter() async throws -> Permit {
        let turn = state.withLock { state -> Promise<Void>? in
            if state.free > 0 {
                state.free -= 1
                return nil
            }
            let turn = Promise<Void>()
            state.queue.append(turn)
            return turn
        }
        do {
            try await turn?.value()
        } catch {
            state.withLock { $0.queue.removeAll { $0 === turn } }
            throw error
        }
        return Permit(of: self)
    }

    fileprivate func leave() {
        state.withLock { state in
            while !state.queue.isEmpty {
                // One that was cancelled meanwhile is passed over. Resuming under the lock only schedules its task.
                if state.queue.removeFirst().settle(.success(())) { return }
            }
            state.free += 1
        }
    }
}

/// A place inside a gate.
package final class Permit: Sendable {
    private let gate: AsyncSemaphore
    private let isGivenBack = Atomic(false)

    fileprivate init(of gate: AsyncSemaphore) { self.gate = gate }

    /// Lets the next one in. More than once is as good as once.
    package func giveBack() {
        if !isGivenBack.exchange(true, ordering: .acquiringAndReleasing) { gate.leave() }
    }

    deinit { giveBack() }
}
