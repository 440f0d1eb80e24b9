/// Who waits for the poller, for a descriptor or for a time: each from its first moment to its last. No I/O.
struct PollerWaiters {
    typealias Continuation = CheckedContinuation<Void, any Error>

    private enum Wait {
        case starting
        case armed(descriptor: CInt, Continuation)
        case asleep(Continuation)
        /// Before it was armed or asleep.
        case cancelled
    }

    /// Tokens are never used twice; 0 is no wait's.
    private var nextToken: UInt64 = 1
    private var waits: [UInt64: Wait] = [:]
    private var sleepers = TimerHeap()

    /// Entries among the sleepers, woken ones that have not been cleared away included.
    var sleeperCount: Int { sleepers.count }
    /// When the first sleeper is to be woken, or was to be, if it is awake already.
    var earliest: ContinuousClock.Instant? { sleepers.earliest }

    /// A new wait, of which the kernel and the sleepers do not know yet.
    mutating func begin() -> UInt64 {
        defer { nextToken += 1 }
        waits[nextToken] = .starting
        return nextToken
    }

    /// Whether it may still be armed or put to sleep: it has not been cancelled.
    func isStarting(_ token: UInt64) -> Bool {
        if case .starting = waits[token] { true } else { false }
    }

    /// The kernel has an entry for it, until it ends.
    mutating func arm(_ token: UInt64, on descriptor: CInt, _ continuation: Continuation) {
        waits[token] = .armed(descriptor: descriptor, continuation)
    }

    /// - Returns: Whether it is to be woken before everybody else.
    mutating func putToSleep(
        _ token: UInt64,
        until deadline: ContinuousClock.Instant,
        _ continuation: Continuation
    ) -> Bool {
        waits[token] = .asleep(continuation)
        return end(token, at: deadline)
    }

    /// Lets a wait that is armed or asleep end at a time.
    ///
    /// - Returns: Whether it is to be woken before everybody else.
    mutating func end(_ token: UInt64, at deadline: ContinuousClock.Instant) -> Bool {
        let isFirst = sleepers.earliest.map { deadline < $0 } ?? true
        sleepers.add(token, until: deadline)
        if sleepers.count > 2 * waits.count + 64 { sleepers.prune { [waits] in waits[$0] != nil } }
        return isFirst
    }

    /// The next sleeper whose time has come; one that is awake already is nobody's any more.
    mutating func nextSleeper(at now: ContinuousClock.Instant) -> UInt64? { sleepers.next(at: now) }

    /// Takes a wait out that is armed or asleep.
    ///
    /// - Returns: Who waits, and the descriptor for which the kernel has an entry; nil when nobody does any more.
    mutating func end(_ token: UInt64) -> (descriptor: CInt?, continuation: Continuation)? {
        switch waits[token] {
        case .armed(let descriptor, let continuation):
            waits[token] = nil
            return (descriptor, continuation)
        case .asleep(let continuation):
            waits[token] = nil
            return (nil, continuation)
        case .starting, .cancelled, nil:
            return nil
        }
    }

    /// Ends a wait before its time, or sees to it that it does not begin.
    mutating func cancel(_ token: UInt64) -> (descriptor: CInt?, continuation: Continuation)? {
        if isStarting(token) { waits[token] = .cancelled }
        return end(token)
    }

    /// The wait is over, however it ended.
    mutating func forget(_ token: UInt64) { waits[token] = nil }
}

/// Who sleeps until when: a binary heap, the earliest first.
///
/// One that is woken before its time stays in here until then; `prune` removes such entries where they become many.
struct TimerHeap {
    private var heap: [(deadline: ContinuousClock.Instant, token: UInt64)] = []

    var count: Int { heap.count }
    var earliest: ContinuousClock.Instant? { heap.first?.deadline }

    mutating func add(_ token: UInt64, until deadline: ContinuousClock.Instant) {
        heap.append((deadline, token))
        var child = heap.count - 1
        while child > 0 {
            let parent = (child - 1) / 2
            guard heap[child].deadline < heap[parent].deadline else { return }
            heap.swapAt(child, parent)
            child = parent
        }
    }

    /// The next one whose time has come.
    mutating func next(at now: ContinuousClock.Instant) -> UInt64? {
        guard let first = heap.first, first.deadline <= now else { return nil }
        let last = heap.removeLast()
        if !heap.isEmpty {
            heap[0] = last
            sink(0)
        }
        return first.token
    }

    /// Keeps those that are still asleep.
    mutating func prune(_ isAsleep: (UInt64) -> Bool) {
        heap.removeAll { !isAsleep($0.token) }
        // From the last parent up, each part becomes a heap.
        for index in stride(from: heap.count / 2 - 1, through: 0, by: -1) { sink(index) }
    }

    private mutating func sink(_ start: Int) {
        var parent = start
        while true {
            var least = parent
            for child in (2 * parent + 1)...(2 * parent + 2) where child < heap.count {
                if heap[child].deadline < heap[least].deadline { least = child }
            }
            guard least != parent else { return }
            heap.swapAt(parent, least)
            parent = least
        }
    }
}

/// The continuous clock, with sleepers that the poller's thread wakes.
///
/// For time limits that nearly always end before their time: `ContinuousClock` would make and cancel a timer of the system
/// for each, which costs more than what it guards.
package struct PollerClock: Clock {
    package typealias Instant = ContinuousClock.Instant

    package init() {}

    package var now: Instant { ContinuousClock.now }
    /// What epoll_wait(2) counts in.
    package var minimumResolution: Duration { .milliseconds(1) }

    /// - Throws: `CancellationError`.
    package func sleep(until deadline: Instant, tolerance: Duration?) async throws {
        try await Poller.shared.sleep(until: deadline)
    }
}
