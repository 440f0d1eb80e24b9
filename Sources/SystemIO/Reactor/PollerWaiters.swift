/// The states of all waits for descriptors and deadlines, without I/O.
struct PollerWaiters {
    /// An armed wait. The descriptor is registered with epoll; nil for a sleep. The result is false at the deadline.
    typealias Wait = (descriptor: CInt?, continuation: CheckedContinuation<Bool, any Error>)

    /// Tokens are never reused; 0 is not a wait's token.
    private var nextToken: UInt64 = 1
    /// The waits that have not ended. Nil for one that is not armed yet.
    private var waits: [UInt64: Wait?] = [:]
    /// The deadlines of the waits. Those of ended waits are not removed at once.
    var timers = TimerHeap()

    /// Adds a wait that is not armed.
    mutating func begin() -> UInt64 {
        defer { nextToken += 1 }
        waits.updateValue(nil, forKey: nextToken)
        return nextToken
    }

    /// True if the wait may still be armed, because it was not cancelled.
    func isStarting(_ token: UInt64) -> Bool {
        if case .some(nil) = waits[token] { true } else { false }
    }

    /// Marks a wait as armed. Without a deadline, only its descriptor or a cancellation ends it.
    ///
    /// - Returns: True if its timer is now the first.
    mutating func arm(_ token: UInt64, _ wait: Wait, until deadline: MonotonicInstant?) -> Bool {
        waits.updateValue(wait, forKey: token)
        guard let deadline else { return false }
        let isFirst = timers.earliest.map { deadline < $0 } ?? true
        timers.add(token, until: deadline)
        if timers.count > 2 * waits.count + 64 { timers.prune { [waits] in waits.keys.contains($0) } }
        return isFirst
    }

    /// The timeout of the next epoll_wait(2).
    mutating func nextTimeout() -> CInt {
        timers.dropEnded { [waits] in waits.keys.contains($0) }
        return timers.epollTimeout
    }

    /// Removes a wait, which cannot be armed any more.
    ///
    /// - Returns: Nil if the wait was not armed, or has already ended.
    mutating func end(_ token: UInt64) -> Wait? { waits.removeValue(forKey: token) ?? nil }
}

/// A binary heap of deadlines, the earliest first.
///
/// Timers of ended waits stay in the heap until `dropEnded` finds them first; `prune` removes them when there are many.
package struct TimerHeap {
    private var heap: [(deadline: MonotonicInstant, token: UInt64)] = []

    package var count: Int { heap.count }
    package var earliest: MonotonicInstant? { heap.first?.deadline }

    /// The timeout of epoll_wait(2) in milliseconds until the first deadline; -1 without one. It is rounded up, because an
    /// early wake-up would be useless.
    package var epollTimeout: CInt {
        guard let earliest else { return -1 }
        let (seconds, attoseconds) = (earliest - MonotonicInstant.now).components
        return CInt(clamping: max(0, seconds * 1_000 + attoseconds / 1_000_000_000_000_000 + 1))
    }

    package init() {}

    package mutating func add(_ token: UInt64, until deadline: MonotonicInstant) {
        heap.append((deadline, token))
        var child = heap.count - 1
        while child > 0 {
            let parent = (child - 1) / 2
            guard heap[child].deadline < heap[parent].deadline else { return }
            heap.swapAt(child, parent)
            child = parent
        }
    }

    /// Removes and returns the next timer that is due.
    package mutating func popDue(at now: MonotonicInstant) -> UInt64? {
        guard let first = heap.first, first.deadline <= now else { return nil }
        removeFirst()
        return first.token
    }

    /// Removes the first timers until one is pending. Each would end an epoll_wait(2), and set a timer of the kernel
    /// before it.
    package mutating func dropEnded(_ isPending: (UInt64) -> Bool) {
        while let first = heap.first, !isPending(first.token) { removeFirst() }
    }

    /// Removes the timers that are not pending.
    package mutating func prune(_ isPending: (UInt64) -> Bool) {
        heap.removeAll { !isPending($0.token) }
        // Sifts down from the last parent to the root, which restores the heap order.
        for index in stride(from: heap.count / 2 - 1, through: 0, by: -1) { sink(index) }
    }

    private mutating func removeFirst() {
        let last = heap.removeLast()
        guard !heap.isEmpty else { return }
        heap[0] = last
        sink(0)
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

/// The continuous clock with timers on the poller thread.
///
/// Intended for timeouts that rarely expire. `ContinuousClock` creates and cancels a system timer for each, which costs
/// more than the guarded operation.
package struct PollerClock: Clock {
    package typealias Instant = MonotonicInstant

    package init() {}

    package var now: Instant { MonotonicInstant.now }
    /// The resolution of epoll_wait(2).
    package var minimumResolution: Duration { .milliseconds(1) }

    /// - Throws: `CancellationError`.
    package func sleep(until deadline: Instant, tolerance: Duration?) async throws {
        try await Poller.shared.sleep(until: deadline)
    }
}
