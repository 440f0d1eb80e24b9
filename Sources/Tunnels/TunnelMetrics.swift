import FoundationEssentials
import Metrics
import Model
import Synchronization
import SystemIO

/// The counters of one tunnel; callable from any thread.
///
/// The relay thread counts bytes for every chunk, under a lock with little contention. The other counters change once
/// per connection.
final class TunnelMetrics: RelayObserver {
    private struct Traffic {
        var up = RateMeter(start: .now)
        var down = RateMeter(start: .now)
    }

    private let id: String
    /// The client whose share of the connection limit the tunnel uses: a holder of leases, or nil for the owner.
    private let holder: String?
    /// `TargetPlanner.failureSentence`.
    private let failureSentence: String
    private let connectionLimit: TunnelConnectionLimiter
    private let totals: RelayTotals
    private let feed: Broadcast<TunnelChange>
    private let traffic = Mutex(Traffic())
    private let counters = Mutex(TunnelStatistics())

    init(
        id: String,
        holder: String? = nil,
        failureSentence: String,
        connectionLimit: TunnelConnectionLimiter,
        totals: RelayTotals = RelayTotals(),
        feed: Broadcast<TunnelChange>
    ) {
        self.id = id
        self.holder = holder
        self.failureSentence = failureSentence
        self.connectionLimit = connectionLimit
        self.totals = totals
        self.feed = feed
    }

    var statistics: TunnelStatistics {
        var statistics = counters.withLock { $0 }
        traffic.withLock { traffic in
            let now = MonotonicInstant.now
            statistics.bytesUp = traffic.up.total
            statistics.bytesDown = traffic.down.total
            statistics.bytesPerSecondUp = traffic.up.rate(at: now)
            statistics.bytesPerSecondDown = traffic.down.rate(at: now)
        }
        return statistics
    }

    /// Counts an accepted client.
    ///
    /// - Returns: False if the connection limit is reached; the client is then already counted as failed.
    func connectionAccepted() -> Bool {
        let isWithinLimit = connectionLimit.acquire(holder)
        counters.withLock { statistics in
            statistics.connections += 1
            if isWithinLimit { statistics.open += 1 }
        }
        totals.accepted()
        if !isWithinLimit { connectionFailed(connectionLimit.failure) }
        return isWithinLimit
    }

    /// Records a successful dial and its duration.
    func connected(after duration: Duration) {
        let (seconds, attoseconds) = duration.components
        counters.withLock { statistics in
            statistics.lastConnectMilliseconds = Double(seconds) * 1_000 + Double(attoseconds) / 1e15
            statistics.lastConnectedAt = Date()
        }
    }

    /// Counts a failure and publishes the event.
    func connectionFailed(_ failure: DialError) {
        counters.withLock { $0.failures[failure.reason.rawValue, default: 0] += 1 }
        totals.failed(failure.reason)
        feed.send(.connectionFailed(tunnel: id, failure))
    }

    /// Counts the end of an accepted connection.
    func connectionClosed() {
        counters.withLock { $0.open -= 1 }
        connectionLimit.release(holder)
    }

    func relayed(up: Int, down: Int, at now: MonotonicInstant) {
        traffic.withLock { traffic in
            traffic.up.add(UInt64(up), at: now)
            traffic.down.add(UInt64(down), at: now)
        }
        totals.relayed(up: up, down: down)
    }

    func ended(_ outcome: RelayOutcome) {
        connectionClosed()
        let reason: DialError.Reason
        switch outcome.reason {
        case .targetFailed: reason = .failed
        case .linkLost: reason = .linkLost
        case .refused: reason = .browser
        case .finished, .drained, .clientFailed, .aborted: return
        }
        connectionFailed(DialError(reason, outcome.description(failure: failureSentence)))
    }
}

/// The mean byte rate of the last five seconds, including the current one, and the sum of all bytes.
struct RateMeter {
    private static let seconds = 5

    private(set) var total: UInt64 = 0
    private let start: MonotonicInstant
    /// The bytes of each of the last seconds, indexed by the second's number modulo five.
    private var counts = [UInt64](repeating: 0, count: seconds)
    private var newest: Int64 = 0
    /// The end of the newest second.
    private var end: MonotonicInstant

    init(start: MonotonicInstant) {
        self.start = start
        end = start + .seconds(1)
    }

    mutating func add(_ count: UInt64, at now: MonotonicInstant) {
        if count == 0 { return }
        total &+= count
        advance(to: now)
        counts[index(of: newest)] &+= count
    }

    /// Returns the rate in bytes per second.
    mutating func rate(at now: MonotonicInstant) -> UInt64 {
        advance(to: now)
        let (second, attoseconds) = (now - start).components
        let fraction = Double(attoseconds) / 1e18
        // Shortly after the start, the mean covers the elapsed time instead of five seconds.
        let span = max(Double(min(second, Int64(Self.seconds) - 1)) + fraction, 0.1)
        return UInt64(Double(counts.reduce(0, &+)) / span)
    }

    /// Clears the counts that are older than five seconds.
    private mutating func advance(to now: MonotonicInstant) {
        if now < end { return }
        let second = (now - start).components.seconds
        for gone in max(newest + 1, second - Int64(Self.seconds) + 1)...second { counts[index(of: gone)] = 0 }
        newest = second
        end = start + .seconds(second + 1)
    }

    private func index(of second: Int64) -> Int { Int(second % Int64(Self.seconds)) }
}

/// Limits the connections of all tunnels together.
struct TunnelConnectionLimiter: Sendable {
    let limit: Int
    private let limiter: FairLimiter<String?>

    init(limit: Int) {
        self.limit = limit
        limiter = FairLimiter(limit: limit)
    }

    /// The error for a connection above the limit.
    var failure: DialError {
        DialError(
            .limit,
            "the limit of \(limit) tunnel connections is reached; close some, or raise tunnels.max_connections"
        )
    }

    /// Counts one more connection of a holder.
    ///
    /// - Returns: False if the limit is reached.
    func acquire(_ holder: String?) -> Bool { limiter.acquire(holder) }

    /// Counts one connection less.
    func release(_ holder: String?) { limiter.release(holder) }
}

/// The counters of all tunnels and streams together, for `/metrics`. They outlive removed tunnels.
struct RelayTotals: Sendable {
    private let connections = Counter(label: MetricDefinition.connections.name)
    private let up = Counter(label: MetricDefinition.relayedBytes.name, dimensions: [("direction", "up")])
    private let down = Counter(label: MetricDefinition.relayedBytes.name, dimensions: [("direction", "down")])

    func accepted() { connections.increment() }

    func relayed(up upBytes: Int, down downBytes: Int) {
        if upBytes > 0 { up.increment(by: upBytes) }
        if downBytes > 0 { down.increment(by: downBytes) }
    }

    func failed(_ reason: DialError.Reason) {
        Counter(label: MetricDefinition.connectionFailures.name, dimensions: [("reason", reason.rawValue)]).increment()
        guard reason == .limit else { return }
        Counter(label: MetricDefinition.limits.name, dimensions: [("limit", "tunnel-connections")]).increment()
    }
}
