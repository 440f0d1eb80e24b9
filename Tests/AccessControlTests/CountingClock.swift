import Synchronization

/// A continuous clock that counts calls of `sleep`.
final class CountingClock: Clock {
    private let count = Mutex(0)

    var sleeps: Int { count.withLock { $0 } }
    var now: ContinuousClock.Instant { ContinuousClock.now }
    var minimumResolution: Duration { ContinuousClock().minimumResolution }

    func sleep(until deadline: ContinuousClock.Instant, tolerance: Duration?) async throws {
        count.withLock { $0 += 1 }
        try await ContinuousClock().sleep(until: deadline, tolerance: tolerance)
    }
}
