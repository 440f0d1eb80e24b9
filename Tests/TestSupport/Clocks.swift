import Synchronization

/// A clock that only a test advances.
package final class ManualClock: Clock {
    package struct Instant: InstantProtocol {
        private var offset: Duration = .zero

        fileprivate init(offset: Duration = .zero) { self.offset = offset }

        package func advanced(by duration: Duration) -> Instant { Instant(offset: offset + duration) }
        package func duration(to other: Instant) -> Duration { other.offset - offset }
        package static func < (one: Instant, other: Instant) -> Bool { one.offset < other.offset }
    }

    private struct Sleeper {
        let deadline: Instant
        let continuation: CheckedContinuation<Void, any Error>
    }

    private struct State {
        var now = Instant()
        var sleepers: [Int: Sleeper] = [:]
        var count = 0
    }

    private let state = Mutex(State())
    private let slept = AsyncStream.makeStream(of: Void.self)

    package init() {}

    package var now: Instant { state.withLock { $0.now } }
    package var minimumResolution: Duration { .zero }

    package func sleep(until deadline: Instant, tolerance: Duration?) async throws {
        let number = state.withLock { state in
            state.count += 1
            return state.count
        }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let isOver = state.withLock { state in
                    guard deadline > state.now, !Task.isCancelled else { return true }
                    state.sleepers[number] = Sleeper(deadline: deadline, continuation: continuation)
                    return false
                }
                if isOver { continuation.resume(with: Result { try Task.checkCancellation() }) }
                slept.continuation.yield()
            }
        } onCancel: {
            state.withLock { $0.sleepers.removeValue(forKey: number) }?.continuation
                .resume(throwing: CancellationError())
        }
    }

    /// Waits until this number of tasks sleep.
    package func waitForSleepers(_ count: Int = 1) async {
        if state.withLock({ $0.sleepers.count >= count }) { return }
        for await _ in slept.stream where state.withLock({ $0.sleepers.count >= count }) { return }
    }

    /// Waits until a task sleeps.
    package func waitForSleeper() async {
        for await _ in slept.stream where state.withLock({ !$0.sleepers.isEmpty }) { return }
    }

    package func advance(by duration: Duration) {
        let due = state.withLock { state in
            state.now = state.now.advanced(by: duration)
            let due = state.sleepers.filter { $0.value.deadline <= state.now }
            for number in due.keys { state.sleepers[number] = nil }
            return due.values.map(\.continuation)
        }
        for continuation in due { continuation.resume() }
    }
}

/// A continuous clock that records the requested length of each sleep.
package final class RecordingClock: Clock {
    private let isImmediate: Bool
    private let recorded = Mutex<[Duration]>([])

    /// - Parameter isImmediate: True if sleeps return at once.
    package init(isImmediate: Bool = false) { self.isImmediate = isImmediate }

    package var sleeps: [Duration] { recorded.withLock { $0 } }
    package var now: ContinuousClock.Instant { .now }
    package var minimumResolution: Duration { ContinuousClock().minimumResolution }

    package func sleep(until deadline: ContinuousClock.Instant, tolerance: Duration?) async throws {
        recorded.withLock { $0.append(ContinuousClock.now.duration(to: deadline)) }
        if isImmediate {
            try Task.checkCancellation()
        } else {
            try await ContinuousClock().sleep(until: deadline, tolerance: tolerance)
        }
    }
}
