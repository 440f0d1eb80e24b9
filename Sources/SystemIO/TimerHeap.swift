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
