import Synchronization

/// One task's wait for what somebody else brings, or for its own cancellation, whichever comes first.
package final class Promise<Value: Sendable>: Sendable {
    private enum State {
        case open
        case awaited(CheckedContinuation<Value, any Error>)
        case settled(Result<Value, any Error>)
        case taken
    }

    private let state = Mutex(State.open)

    package init() {}

    /// False when it was settled before, then this changes nothing and the caller keeps what it brought.
    @discardableResult package func settle(_ result: Result<Value, any Error>) -> Bool {
        let (isFirst, continuation) = state.withLock { state -> (Bool, CheckedContinuation<Value, any Error>?) in
            switch state {
            case .open:
                state = .settled(result)
                return (true, nil)
            case .awaited(let continuation):
                state = .taken
                return (true, continuation)
            case .settled, .taken:
                return (false, nil)
            }
        }
        continuation?.resume(with: result)
        return isFirst
    }

    package var isSettled: Bool {
        state.withLock { state in
            switch state {
            case .open, .awaited: false
            case .settled, .taken: true
            }
        }
    }

    /// Waits; once only. Throws what it was settled with, or `CancellationError`.
    package func value() async throws -> Value {
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let result = state.withLock { state -> Result<Value, any Error>? in
                    if case .settled(let result) = state {
                        state = .taken
                        return result
                    }
                    state = .awaited(continuation)
                    return nil
                }
                if let result { continuation.resume(with: result) }
            }
        } onCancel: {
            settle(.failure(CancellationError()))
        }
    }
}
