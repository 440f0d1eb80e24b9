package import Model

/// Opens a byte stream to a route.
///
/// The role that keeps tunnels and probes from knowing how a phone is reached: `LANDialer` here, the usbmuxd client in
/// Devices, one that picks between them in patchbayd.
package protocol Dialer: Sendable {
    /// - Throws: `DialError`; cancelling the task gives up at once.
    func dial(_ route: Route) async throws -> Connection
}

/// An established stream to a target.
package struct Connection: ~Copyable, Sendable {
    /// What a half-close does on this stream.
    package enum HalfClose: Sendable {
        /// `shutdown(SHUT_WR)` reaches the other end and its reply still arrives (TCP, unix sockets).
        case propagates
        /// Any shutdown ends both directions at once and loses the reply (usbmuxd): the end of what the client sends
        /// is kept to ourselves, and what the device still sends is drained.
        case destroys
    }

    /// Connected, non-blocking, stream.
    package let descriptor: Descriptor
    package let halfClose: HalfClose
    /// Bytes that the target sent before the stream was handed over; they come first.
    package let early: [UInt8]
    /// A place among a limited number of streams, given back when the last reference goes: whoever holds the descriptor
    /// holds this too and lets go of it only after closing. Nil where nobody counts.
    package let lease: (any Sendable)?
    /// To be asked once the stream has ended. Nil where the end says by itself what it is: TCP tells a close from a failure.
    package let witness: (any LinkChecker)?

    package init(
        descriptor: consuming Descriptor,
        halfClose: HalfClose,
        early: [UInt8] = [],
        lease: (any Sendable)? = nil,
        witness: (any LinkChecker)? = nil
    ) {
        self.descriptor = descriptor
        self.halfClose = halfClose
        self.early = early
        self.lease = lease
        self.witness = witness
    }

    /// The same stream, about whose end this one can be asked.
    package consuming func witnessed(by witness: any LinkChecker) -> Connection {
        let (halfClose, early, lease) = (halfClose, early, lease)
        return Connection(descriptor: descriptor, halfClose: halfClose, early: early, lease: lease, witness: witness)
    }

    /// The same stream, which holds this, too, until it is closed.
    package consuming func holding(_ use: any Sendable) -> Connection {
        let (halfClose, early, lease, witness) = (halfClose, early, lease, witness)
        return Connection(
            descriptor: descriptor,
            halfClose: halfClose,
            early: early,
            lease: lease.map { [$0, use] as [any Sendable] } ?? use,
            witness: witness
        )
    }

    /// Gives the descriptor away together with what is known about it, the lease included.
    package consuming func release() -> (number: CInt, halfClose: HalfClose, early: [UInt8], lease: (any Sendable)?) {
        let (halfClose, early, lease) = (halfClose, early, lease)
        return (descriptor.release(), halfClose, early, lease)
    }
}

/// Knows of a stream that has ended whether the way it took is still there: where it is not, the end is none that the
/// other side meant, but a cut.
package protocol LinkChecker: Sendable {
    /// Is asked once, after the stream has ended, and does not wait.
    ///
    /// The answer comes once and soon, from any thread, perhaps before this call returns. Whoever asks gives up after a
    /// while: of a way about which nobody can be asked any more, nothing good is to be supposed.
    func ask(_ answer: @escaping @Sendable (_ isWayThere: Bool) -> Void)
}
