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
