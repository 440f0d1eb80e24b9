import CLinux
import Glibc
import SystemIO
import Synchronization

/// What other threads want of the relay's thread, in order.
final class RelayCommandQueue: Sendable {
    /// Descriptors by number: they belong to the order, and whoever carries it out owns them.
    enum Order: Sendable {
        case adopt(Adoption)
        /// What the witness of a connection's carrier says.
        case hear(connection: UInt64, isWayThere: Bool)
        case cut(Set<ObjectIdentifier>, CheckedContinuation<Void, Never>)
        case stop(CheckedContinuation<Void, Never>)
    }

    struct Adoption: Sendable {
        let client: CInt
        let carrier: CInt
        let halfClose: Connection.HalfClose
        let early: [UInt8]
        let lease: (any Sendable)?
        let witness: (any LinkChecker)?
        let screen: RelayInspector?
        let observer: any RelayObserver

        init(
            client: consuming Descriptor,
            carrier: consuming Connection,
            screen: RelayInspector?,
            observer: any RelayObserver
        ) {
            self.screen = screen
            self.client = client.release()
            witness = carrier.witness
            (self.carrier, halfClose, early, lease) = carrier.release()
            self.observer = observer
        }

        /// Carries the order out by closing: nobody relays any more.
        func refuse() {
            Descriptor(owning: client).reset()
            Descriptor(owning: carrier).reset()
            observer.ended(RelayOutcome(reason: .cut, bytesUp: 0, bytesDown: 0))
        }
    }

    private struct State {
        var orders: [Order] = []
        var isClosed = false
    }

    /// Becomes readable when there are orders.
    let wake: Descriptor
    private let state = Mutex(State())
    private let hasOrders = Atomic(false)

    init() {
        let number = eventfd(0, CInt(EFD_NONBLOCK) | CInt(EFD_CLOEXEC))
        precondition(number >= 0, "eventfd failed: errno \(errno)")
        wake = Descriptor(owning: number)
    }

    /// - Returns: False when nobody will carry the order out any more.
    func put(_ order: Order) -> Bool {
        let (isOpen, isFirst) = state.withLock { state in
            if state.isClosed { return (false, false) }
            state.orders.append(order)
            hasOrders.store(true, ordering: .releasing)
            return (true, state.orders.count == 1)
        }
        if isFirst { eventfd_write(wake.number, 1) }
        return isOpen
    }

    /// Everything that waits. The relay's thread alone calls it.
    func take() -> [Order] {
        var count: eventfd_t = 0
        eventfd_read(wake.number, &count)
        return state.withLock { state in
            hasOrders.store(false, ordering: .relaxed)
            defer { state.orders = [] }
            return state.orders
        }
    }

    /// Whether there are orders, cheaply enough to be asked all the time; true at the latest when `wake` is readable.
    var isWaiting: Bool { hasOrders.load(ordering: .acquiring) }

    /// The last batch; from now on every order is refused.
    func close() -> [Order] {
        state.withLock { state in
            state.isClosed = true
            defer { state.orders = [] }
            return state.orders
        }
    }
}
