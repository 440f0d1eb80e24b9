import Synchronization

/// How many requests of a connection were taken up, and how many answers the kernel has got whole.
///
/// HTTP/1.1 answers in the order of the requests, so that the two are counted alike.
final class ResponseTracker: Sendable {
    private struct State {
        var begun = 0
        var done = 0
    }

    private let state = Mutex(State())

    /// A request is taken up.
    func begin() -> PendingResponse {
        let number = state.withLock { state in
            state.begun += 1
            return state.begun
        }
        return PendingResponse(of: number, on: self)
    }

    /// The last byte of an answer is out; said on the connection's event loop, in the same turn.
    func end() { state.withLock { $0.done += 1 } }

    fileprivate func hasDone(_ number: Int) -> Bool { state.withLock { $0.done >= number } }
}

/// The answer to one request on its way out.
struct PendingResponse: Sendable {
    private let number: Int
    private let deliveries: ResponseTracker

    fileprivate init(of number: Int, on deliveries: ResponseTracker) {
        self.number = number
        self.deliveries = deliveries
    }

    /// Whether the kernel has all of it.
    var isDone: Bool { deliveries.hasDone(number) }
}
