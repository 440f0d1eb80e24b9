import FoundationEssentials
import Model
import Synchronization

/// Counts what goes through one tunnel, from whatever thread it goes.
///
/// Bytes are counted on the relay's thread for every chunk, so they have a lock that hardly anybody else takes; the rest
/// happens once per connection.
final class TunnelMetrics: RelayObserver {
    private struct Carried {
        var up: UInt64 = 0
        var down: UInt64 = 0
        var upRate = RateMeter(start: .now)
        var downRate = RateMeter(start: .now)
    }

    private let id: String
    private let quota: ConnectionLimit
    private let feed: Broadcast<TunnelEvent>
    private let carried = Mutex(Carried())
    private let rest = Mutex(TunnelStatistics())

    init(id: String, quota: ConnectionLimit, feed: Broadcast<TunnelEvent>) {
        self.id = id
        self.quota = quota
        self.feed = feed
    }

    var statistics: TunnelStatistics {
        var statistics = rest.withLock { $0 }
        carried.withLock { carried in
            let now = ContinuousClock.now
            statistics.bytesUp = carried.up
            statistics.bytesDown = carried.down
            statistics.rateUp = carried.upRate.rate(at: now)
            statistics.rateDown = carried.downRate.rate(at: now)
        }
        return statistics
    }

    /// A client connected.
    ///
    /// - Returns: False when there is no place for it; it is counted as failed already.
    func accept() -> Bool {
        let hasPlace = quota.take()
        rest.withLock { statistics in
            statistics.connections += 1
            if hasPlace { statistics.open += 1 }
        }
        if !hasPlace {
            fail(
                DialError(
                    .limit,
                    "\(quota.limit) connections go through tunnels already; close some, or raise tunnels.max_connections"
                )
            )
        }
        return hasPlace
    }

    func connected(after duration: Duration) {
        let (seconds, attoseconds) = duration.components
        rest.withLock { statistics in
            statistics.lastConnectMilliseconds = Double(seconds) * 1_000 + Double(attoseconds) / 1e15
            statistics.lastConnected = Date()
        }
    }

    func fail(_ failure: DialError) {
        rest.withLock { $0.failures[failure.reason.rawValue, default: 0] += 1 }
        feed.send(.connectionFailed(tunnel: id, failure))
    }

    /// An accepted client is gone.
    func leave() {
        rest.withLock { $0.open -= 1 }
        quota.giveBack()
    }

    func relayed(up: Int, down: Int) {
        let now = ContinuousClock.now
        carried.withLock { carried in
            carried.up += UInt64(up)
            carried.down += UInt64(down)
            carried.upRate.add(UInt64(up), at: now)
            carried.downRate.add(UInt64(down), at: now)
        }
    }

    func ended(_ outcome: RelayOutcome) {
        leave()
        switch outcome.reason {
        case .brokenByTarget: fail(DialError(.failed, outcome.description))
        case .severed: fail(DialError(.cut, outcome.description))
        case .refused: fail(DialError(.browser, outcome.description))
        case .finished, .drained, .brokenByClient, .cut: break
        }
    }
}

/// How many bytes a second there were of late: the mean of the last five seconds, the running one included.
struct RateMeter {
    private static let seconds = 5

    private let start: ContinuousClock.Instant
    /// What came in each of the last seconds, by the second's number.
    private var counts = [UInt64](repeating: 0, count: seconds)
    private var newest: Int64 = 0

    init(start: ContinuousClock.Instant) { self.start = start }

    mutating func add(_ count: UInt64, at now: ContinuousClock.Instant) {
        advance(to: now)
        counts[place(of: newest)] &+= count
    }

    /// Bytes per second.
    mutating func rate(at now: ContinuousClock.Instant) -> UInt64 {
        advance(to: now)
        let (second, attoseconds) = (now - start).components
        let fraction = Double(attoseconds) / 1e18
        // Whoever began half a second ago is not measured by five.
        let span = max(Double(min(second, Int64(Self.seconds) - 1)) + fraction, 0.1)
        return UInt64(Double(counts.reduce(0, &+)) / span)
    }

    /// Forgets what is too long ago.
    private mutating func advance(to now: ContinuousClock.Instant) {
        let second = (now - start).components.seconds
        guard second > newest else { return }
        for gone in max(newest + 1, second - Int64(Self.seconds) + 1)...second { counts[place(of: gone)] = 0 }
        newest = second
    }

    private func place(of second: Int64) -> Int { Int(second % Int64(Self.seconds)) }
}

/// Those of a tunnel's connections that go through the network: a group that is cut by itself, when somebody takes back the yes
/// that let them go there. What goes by cable goes on.
final class NetworkConnectionGroup: RelayObserver {
    private let tally: TunnelMetrics

    init(of tally: TunnelMetrics) { self.tally = tally }

    func relayed(up: Int, down: Int) { tally.relayed(up: up, down: down) }

    func ended(_ outcome: RelayOutcome) { tally.ended(outcome) }
}

/// Counts the connections of all tunnels together.
final class ConnectionLimit: Sendable {
    let limit: Int
    private let count = Mutex(0)

    init(limit: Int) { self.limit = limit }

    /// - Returns: False when all places are taken.
    func take() -> Bool {
        count.withLock { count in
            guard count < limit else { return false }
            count += 1
            return true
        }
    }

    func giveBack() { count.withLock { $0 -= 1 } }
}
