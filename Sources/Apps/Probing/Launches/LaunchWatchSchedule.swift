/// The times at which a launch watch opens its connections. Has no I/O.
///
/// Some servers close an idle connection after a while (NanoHTTPD after 5 s). So the next connection is opened while an
/// earlier one is still open, and both lead to the same listener. Until the server's limit is known, the intervals double
/// from 1 s. After 5 minutes without a limit, one connection is enough.
struct LaunchWatchSchedule: Sendable {
    /// The age at which a server counts as one without a limit.
    static let longestLifetime = Duration.seconds(300)
    static let shortestInterval = Duration.milliseconds(500)

    /// The time for which the server keeps an idle connection; nil while unknown.
    private(set) var lifetime: Duration?
    /// The times at which the open connections were opened, oldest first.
    private(set) var opened: [Duration]
    /// True if one connection is enough, because the server has no limit.
    private var isSettled = false
    /// The time before which no connection is due, because an attempt has failed.
    private var retry: Duration?

    /// Starts with one connection.
    init(at now: Duration) { opened = [now] }

    /// The time at which the next connection is due; nil if none is.
    var next: Duration? {
        guard let oldest = opened.first, let newest = opened.last else { return nil }
        if let lifetime { return max(newest + max(lifetime / 2, Self.shortestInterval), retry ?? .zero) }
        guard !isSettled, newest - oldest < Self.longestLifetime / 2 else { return nil }
        return max(oldest + max((newest - oldest) * 2, .seconds(1)), retry ?? .zero)
    }

    /// Records a failed attempt.
    mutating func postpone(at now: Duration) { retry = now + Self.shortestInterval }

    /// Records a new connection.
    ///
    /// - Returns: The indexes of the connections that are no longer needed, in descending order.
    mutating func open(at now: Duration) -> [Int] {
        opened.append(now)
        retry = nil
        // Until the limit is known, the oldest connection measures it.
        let superfluous = lifetime == nil ? Array(1..<(opened.count - 1)) : Array(0..<(opened.count - 1))
        return remove(superfluous.reversed())
    }

    /// Records that the server closed the connection with an index, while a later one is open.
    mutating func close(_ index: Int, at now: Duration) {
        let age = now - opened[index]
        lifetime = min(lifetime ?? age, age)
        opened.remove(at: index)
    }

    /// Records the time. After `longestLifetime` the oldest connection is enough.
    ///
    /// - Returns: The indexes of the connections that are no longer needed, in descending order.
    mutating func settle(at now: Duration) -> [Int] {
        guard let settling, now >= settling else { return [] }
        isSettled = true
        return remove((1..<opened.count).reversed())
    }

    /// The time at which `settle` has an effect; nil if never.
    var settling: Duration? {
        lifetime == nil && opened.count > 1 ? opened.first.map { $0 + Self.longestLifetime } : nil
    }

    private mutating func remove(_ indexes: [Int]) -> [Int] {
        for index in indexes { opened.remove(at: index) }
        return indexes
    }
}
