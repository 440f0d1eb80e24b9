import Synchronization

/// A flag that one task sets and others read. It stays set.
package final class SharedFlag: Sendable {
    private let value = Mutex(false)

    package init() {}

    package var isSet: Bool { value.withLock { $0 } }

    package func set() { value.withLock { $0 = true } }
}
