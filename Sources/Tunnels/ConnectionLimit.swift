import Synchronization

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
