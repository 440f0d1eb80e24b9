import Synchronization
import TestSupport

/// Counts the outcomes of the soak test's streams.
final class SoakResults: Sendable {
    struct Counts {
        /// All bytes arrived, followed by the end of the stream.
        var whole = 0
        /// The client was reset before the first byte.
        var refused = 0
        /// The client was reset after a gapless part of the data.
        var cut = 0
        /// The client closed first.
        var left = 0
        var bytes = 0
        /// The longest that a client waited for the first byte or the end.
        var longestWait = Duration.zero
        /// Descriptions of broken promises.
        var broken: [String] = []
    }

    private let state = Mutex(Counts())

    var counts: Counts { state.withLock { $0 } }

    /// Records the bytes that an app received.
    func served(_ received: PatternPeer.Received) {
        state.withLock { counts in
            counts.bytes += received.count
            if !received.isIntact { counts.broken.append("an app got a hole within \(received.count) bytes") }
        }
    }

    /// Records the result of a client; nil if the connect was refused.
    ///
    /// - Returns: True if the client received data.
    func add(
        _ exchanged: PatternPeer.Exchanged?,
        to path: SoakPath,
        began: ContinuousClock.Instant,
        limit: Int?
    ) -> Bool {
        state.withLock { counts in
            guard let exchanged else {
                counts.broken.append("\(path): nobody listens")
                return false
            }
            let received = exchanged.received
            counts.bytes += received.count
            counts.longestWait = max(counts.longestWait, (exchanged.firstByteTime ?? .now) - began)
            if !received.isIntact { counts.broken.append("\(path): a hole within \(received.count) bytes") }
            let isAll = received.count == path.app.down && exchanged.sent == path.app.up
            switch received.end {
            case .closed where isAll: counts.whole += 1
            case .closed: counts.broken.append("\(path): \(received.count) bytes looked like all of it")
            case .broken where path.isSteady:
                counts.broken.append("\(path): \(received.end) after \(received.count) bytes, for no reason")
            case .broken where received.count == 0: counts.refused += 1
            case .broken: counts.cut += 1
            case .open where limit != nil && received.count == limit: counts.left += 1
            case .open: counts.broken.append("\(path): hangs after \(received.count) bytes")
            }
            return received.count > 0
        }
    }
}
