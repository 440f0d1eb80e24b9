import FoundationEssentials
import Model
import Synchronization

/// Counts what goes through one tunnel, from whatever thread it goes.
///
/// Bytes are counted on the relay's thread for every chunk, so they are atomics; the rest happens once per connection.
final class TunnelTally: RelayObserver {
    private let id: String
    private let quota: ConnectionQuota
    private let feed: TunnelEventFeed
    private let bytesUp = Atomic<UInt64>(0)
    private let bytesDown = Atomic<UInt64>(0)
    private let rest = Mutex(TunnelStatistics())

    init(id: String, quota: ConnectionQuota, feed: TunnelEventFeed) {
        self.id = id
        self.quota = quota
        self.feed = feed
    }

    var statistics: TunnelStatistics {
        var statistics = rest.withLock { $0 }
        statistics.bytesUp = bytesUp.load(ordering: .relaxed)
        statistics.bytesDown = bytesDown.load(ordering: .relaxed)
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
                DialFailure(
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

    func fail(_ failure: DialFailure) {
        rest.withLock { $0.failures[failure.reason.rawValue, default: 0] += 1 }
        feed.send(.connectionFailed(tunnel: id, failure))
    }

    /// An accepted client is gone.
    func leave() {
        rest.withLock { $0.open -= 1 }
        quota.giveBack()
    }

    func relayed(up: Int, down: Int) {
        if up > 0 { bytesUp.wrappingAdd(UInt64(up), ordering: .relaxed) }
        if down > 0 { bytesDown.wrappingAdd(UInt64(down), ordering: .relaxed) }
    }

    func ended(_ outcome: RelayOutcome) {
        leave()
        if case .brokenByTarget = outcome.reason { fail(DialFailure(.failed, outcome.description)) }
    }
}
