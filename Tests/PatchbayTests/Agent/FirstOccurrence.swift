import Synchronization

/// Recognizes the first occurrence of each number.
final class FirstOccurrence: Sendable {
    private let seen = Mutex<Set<Int>>([])

    func isFirst(_ number: Int) -> Bool { seen.withLock { $0.insert(number).inserted } }
}
