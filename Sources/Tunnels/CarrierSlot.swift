import Sockets
import Synchronization

/// Where a dial leaves its carrier: a noncopyable value cannot be a child task's result.
///
/// A carrier that nobody takes out is closed with the slot.
final class CarrierSlot: Sendable {
    private let content = Mutex<Carrier?>(nil)

    func put(_ carrier: consuming Carrier) {
        var carrier = Optional(carrier)
        content.withLock { $0 = carrier.take() }
    }

    func take() -> Carrier? { content.withLock { $0.take() } }
}
