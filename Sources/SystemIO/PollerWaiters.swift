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
