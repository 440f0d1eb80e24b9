import Synchronization

/// Tells every follower what happens to tunnels.
///
/// A follower that lets 256 events wait is let go, its stream ends: it follows again and reads the list anew.
final class TunnelEventFeed: Sendable {
    static let capacity = 256

    private struct State {
        var followers: [AsyncStream<TunnelEvent>.Continuation] = []
        var isFinished = false
    }

    private let state = Mutex(State())

    /// Every event from now on; ended at once when there will be none.
    func follow() -> AsyncStream<TunnelEvent> {
        let (stream, continuation) = AsyncStream.makeStream(
            of: TunnelEvent.self,
            bufferingPolicy: .bufferingOldest(Self.capacity)
        )
        let isFinished = state.withLock { state in
            if !state.isFinished { state.followers.append(continuation) }
            return state.isFinished
        }
        if isFinished { continuation.finish() }
        return stream
    }

    func send(_ event: TunnelEvent) {
        state.withLock { state in
            state.followers.removeAll { follower in
                // Dropped is too slow, terminated is gone.
                if case .enqueued = follower.yield(event) { return false }
                follower.finish()
                return true
            }
        }
    }

    func finish() {
        let followers = state.withLock { state in
            state.isFinished = true
            defer { state.followers = [] }
            return state.followers
        }
        for follower in followers { follower.finish() }
    }
}
