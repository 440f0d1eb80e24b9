import Synchronization

/// A result that one task waits for, until it is completed or the task is cancelled.
package final class Promise<Value: Sendable>: Sendable {
    private enum State {
        case open
        case awaited(CheckedContinuation<Value, any Error>)
        case completed(Result<Value, any Error>)
        case taken
    }

    private let state = Mutex(State.open)

    package init() {}

    /// Completes the promise. Returns false, without effect, for a completed promise.
    @discardableResult package func complete(_ result: Result<Value, any Error>) -> Bool {
        let (isFirst, continuation) = state.withLock { state -> (Bool, CheckedContinuation<Value, any Error>?) in
            switch state {
            case .open:
                state = .completed(result)
                return (true, nil)
            case .awaited(let continuation):
                state = .taken
                return (true, continuation)
            case .completed, .taken:
                return (false, nil)
            }
        }
        continuation?.resume(with: result)
        return isFirst
    }

    package var isCompleted: Bool {
        state.withLock { state in
            switch state {
            case .open, .awaited: false
            case .completed, .taken: true
            }
        }
    }

    /// Waits for the result; may be called once. Throws the failure, or `CancellationError`.
    package func value() async throws -> Value {
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let result = state.withLock { state -> Result<Value, any Error>? in
                    if case .completed(let result) = state {
                        state = .taken
                        return result
                    }
                    state = .awaited(continuation)
                    return nil
                }
                if let result { continuation.resume(with: result) }
            }
        } onCancel: {
            complete(.failure(CancellationError()))
        }
    }
}

/// A one-time event that any number of tasks can wait for.
///
/// Cancellation does not end the wait: the latch must always be opened.
package final class AsyncLatch: Sendable {
    private struct State {
        var isOpen = false
        var waiting: [CheckedContinuation<Void, Never>] = []
    }

    private let state = Mutex(State())

    package init() {}

    /// Opens the latch and resumes every waiting task.
    package func open() {
        let waiting = state.withLock { state in
            state.isOpen = true
            defer { state.waiting = [] }
            return state.waiting
        }
        for continuation in waiting { continuation.resume() }
    }

    /// Waits until the latch is open.
    package func wait() async {
        await withCheckedContinuation { continuation in
            let isOpen = state.withLock { state in
                if !state.isOpen { state.waiting.append(continuation) }
                return state.isOpen
            }
            if isOpen { continuation.resume() }
        }
    }
}

/// Runs `body` and cancels it after the time limit.
///
/// - Returns: The result of `body`. Nil after the limit; `body` has then been cancelled and has ended.
/// - Throws: The error of `body`; `CancellationError`.
package func withTimeout<Value: Sendable>(
    _ limit: Duration,
    clock: any Clock<Duration>,
    _ body: @escaping @Sendable () async throws -> Value
) async throws -> Value? {
    try await withCancellation(when: { try await clock.sleep(for: limit) }, body)
}

/// Runs `body` and cancels it when `end` returns.
///
/// - Returns: The result of `body`. Nil if `end` returned first; `body` has then been cancelled and has ended.
/// - Throws: The first error of `body` or `end`; `CancellationError`.
package func withCancellation<Value: Sendable>(
    when end: @escaping @Sendable () async throws -> Void,
    _ body: @escaping @Sendable () async throws -> Value
) async throws -> Value? {
    try await withThrowingTaskGroup(of: Value?.self) { group in
        group.addTask { try await body() }
        group.addTask {
            try await end()
            return nil
        }
        defer { group.cancelAll() }
        return try await group.next() ?? nil
    }
}

/// Measures the time since its creation by the given clock.
package struct ElapsedTimer: Sendable {
    private let read: @Sendable () -> Duration

    package init(_ clock: some Clock<Duration>) {
        let start = clock.now
        read = { start.duration(to: clock.now) }
    }

    package var elapsed: Duration { read() }
}
