import Synchronization

/// Knows what it was asked about before.
final class FirstTime: Sendable {
    private let seen = Mutex<Set<Int>>([])

    func `is`(_ number: Int) -> Bool { seen.withLock { $0.insert(number).inserted } }
}
