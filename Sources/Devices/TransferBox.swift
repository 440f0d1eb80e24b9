import SystemIO
import Synchronization

/// Carries a descriptor out of a task that may be given up on: what nobody takes is closed.
final class TransferBox: Sendable {
    private let held = Mutex<Descriptor?>(nil)

    func put(_ descriptor: consuming sending Descriptor) {
        var descriptor: Descriptor? = descriptor
        held.withLock { $0 = descriptor.take() }
    }

    func take() -> Descriptor? { held.withLock { $0.take() } }
}
