import Synchronization

/// How many dials of a listening socket may be under way, counted for the one task that accepts.
final class DialPlaces: Sendable {
    private struct State {
        var free: Int
        var waiting: CheckedContinuation<Void, Never>?
    }

    private let state: Mutex<State>

    init(_ count: Int) { state = Mutex(State(free: count)) }

    /// Waits for a place and takes it. One task at a time may wait.
    ///
    /// Waiting does not end with cancellation; it does with the next dial, which is cancelled too.
    func take() async {
        if takeNow() { return }
        await withCheckedContinuation { continuation in
            let isTaken = state.withLock { state in
                guard state.free == 0 else {
                    state.free -= 1
                    return true
                }
                precondition(state.waiting == nil, "two tasks wait for a place")
                state.waiting = continuation
                return false
            }
            if isTaken { continuation.resume() }
        }
    }

    func giveBack() {
        let next = state.withLock { state -> CheckedContinuation<Void, Never>? in
            // Handed on without a gap.
            if let next = state.waiting.take() { return next }
            state.free += 1
            return nil
        }
        next?.resume()
    }

    private func takeNow() -> Bool {
        state.withLock { state in
            guard state.free > 0 else { return false }
            state.free -= 1
            return true
        }
    }
}
