import Synchronization
import Tunnels

/// Counts who is at the facade, and is the group of its streams in the relay.
final class UsbmuxServerStatistics: RelayObserver {
    struct Counts: Hashable, Sendable {
        /// Those who have not got a stream yet, or want none.
        var clients = 0
        var streams = 0
        /// Streams that ended because the way to their phone did.
        var cut: UInt64 = 0
        /// The number of the newest client.
        var last: UInt32 = 0
    }

    private let limit: Int
    private let state = Mutex(Counts())

    init(limit: Int) { self.limit = limit }

    var counts: Counts { state.withLock { $0 } }

    /// - Returns: The client's number; nil when there is no place for it.
    func enter() -> UInt32? {
        state.withLock { counts in
            guard counts.clients < limit else { return nil }
            counts.clients += 1
            counts.last &+= 1
            return counts.last
        }
    }

    func leave() { state.withLock { $0.clients -= 1 } }

    /// A stream is about to be handed to the relay.
    func begin() { state.withLock { $0.streams += 1 } }

    /// Nobody asks how much the facade carried.
    func relayed(up: Int, down: Int) {}

    func ended(_ outcome: RelayOutcome) {
        state.withLock { counts in
            counts.streams -= 1
            if outcome.reason == .severed { counts.cut += 1 }
        }
    }
}
