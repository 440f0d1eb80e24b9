import CLinux
import Glibc
import Synchronization
package import SystemIO

/// Carries the bytes of every tunnel: one thread, however many connections.
///
/// Pure back-pressure: what one side does not take is not read from the other, no send has a timeout, and no byte is lost
/// at any stall. The thread runs from `init` to `stop()`.
package final class Relay: Sendable {
    private let inbox = RelayCommandQueue()

    /// - Parameter idle: Where a device cannot be told that the client has ended (`Connection.HalfClose.destroys`): how
    ///   long it may be silent, from the last byte either way, before the connection is closed.
    package init(idle: Duration = .seconds(5)) {
        let inbox = inbox
        startThread(named: "patchbay-relay") { RelayEventLoop(inbox, idle: idle).run() }
    }

    /// Makes one stream of a client and a carrier, and takes both over.
    ///
    /// The observer hears of every byte and of the end, also when the loop has been stopped already. With a screen, the
    /// client's first bytes are looked at before the target gets any.
    package func adopt(
        client: consuming Descriptor,
        carrier: consuming Connection,
        screen: RelayInspector? = nil,
        observer: any RelayObserver
    ) {
        let adoption = RelayCommandQueue.Adoption(client: client, carrier: carrier, screen: screen, observer: observer)
        if !inbox.put(.adopt(adoption)) { adoption.refuse() }
    }

    /// Ends every connection of these observers that was adopted before this call.
    ///
    /// Returns when they are closed: not a byte of theirs moves afterwards.
    package func cut(_ observers: any RelayObserver...) async {
        let groups = Set(observers.map { ObjectIdentifier($0) })
        await withCheckedContinuation { continuation in
            if !inbox.put(.cut(groups, continuation)) { continuation.resume() }
        }
    }

    /// Ends every connection and the thread, and returns when both have ended.
    package func stop() async {
        await withCheckedContinuation { continuation in
            if !inbox.put(.stop(continuation)) { continuation.resume() }
        }
    }
}

/// Whoever wants to know what becomes of relayed connections: a tunnel's statistics, later a grant's.
///
/// Connections that share an observer are one group, which `Relay.cut(_:)` ends together. Both methods are called on
/// the relay's thread, which carries every connection, so they return at once.
package protocol RelayObserver: AnyObject, Sendable {
    /// So many bytes were handed on to the target, and to the client, since the last call.
    func relayed(up: Int, down: Int)

    /// The connection is over and both of its descriptors are closed. Called exactly once for each adopted connection.
    func ended(_ outcome: RelayOutcome)
}

/// How a relayed connection ended, and how much it carried.
package struct RelayOutcome: Hashable, Sendable {
    package enum Reason: Hashable, Sendable {
        /// Both sides said all they had to say, and it was delivered.
        case finished
        /// The client ended its side, and the device, which cannot be told so over usbmuxd, had nothing more to say.
        case drained
        /// The client's side failed with this errno; the target was reset.
        case brokenByClient(CInt)
        /// The target's side failed with this errno, or closed while the client's bytes waited; the client was reset.
        case brokenByTarget(CInt)
        /// The way to the target went while the stream was open: the phone was unplugged, or usbmuxd ended. The client was
        /// reset, after everything that had come.
        case severed
        /// The client's first request was refused: a web page may have sent it. The target got no byte.
        case refused(BrowserGuard.Refusal)
        /// We ended it: the tunnel was removed, or the broker stops.
        case cut
    }

    package let reason: Reason
    package let bytesUp: UInt64
    package let bytesDown: UInt64
}

extension RelayOutcome: CustomStringConvertible {
    package var description: String {
        let amount = "after \(bytesUp) bytes up and \(bytesDown) bytes down"
        return switch reason {
        case .finished: "finished \(amount)"
        case .drained: "finished \(amount), the device had no more to say"
        case .brokenByClient(let code): "the client broke off \(amount): \(SocketError.words(for: code))"
        case .brokenByTarget(let code): "the target broke off \(amount): \(SocketError.words(for: code))"
        case .severed: "the phone or usbmuxd went \(amount)"
        case .refused(let refusal): "\(refusal)"
        case .cut: "cut \(amount)"
        }
    }
}

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
