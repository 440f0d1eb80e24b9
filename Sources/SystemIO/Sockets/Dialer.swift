package import Model

/// Opens a byte stream to a route.
///
/// The protocol hides the transport from probes and clients. `RelayDialer` connects by the plans of a `ConnectPlanner`.
package protocol Dialer: Sendable {
    /// Opens a stream.
    ///
    /// - Throws: `DialError`; a cancelled task aborts the dial immediately.
    func dial(_ route: Route) async throws -> Connection
}

/// An established stream to a target.
package struct Connection: ~Copyable, Sendable {
    /// The effect of a half-close on this stream.
    package enum HalfClose: Sendable {
        /// `shutdown(SHUT_WR)` sends EOF, and the peer's response still arrives (TCP, unix sockets).
        case propagates
        /// Any shutdown closes both directions and loses the response (usbmuxd). The client's EOF is therefore not
        /// forwarded, and the device's bytes are drained.
        case destroys
    }

    /// A connected, non-blocking stream socket.
    package let descriptor: Descriptor
    package let halfClose: HalfClose
    /// A permit of a connection limit, released with the last reference. The owner of the descriptor keeps the permit
    /// until after the close. Nil if there is no limit.
    package let permit: (any Sendable)?
    /// Classifies EOF of this stream. Nil if EOF is unambiguous: TCP distinguishes a close from a failure.
    package let linkCheck: LinkCheck?

    package init(
        descriptor: consuming Descriptor,
        halfClose: HalfClose,
        permit: (any Sendable)? = nil,
        linkCheck: LinkCheck? = nil
    ) {
        self.descriptor = descriptor
        self.halfClose = halfClose
        self.permit = permit
        self.linkCheck = linkCheck
    }

    /// Returns the descriptor, and its ownership, with the properties and the permit.
    package consuming func release() -> (number: CInt, halfClose: HalfClose, permit: (any Sendable)?) {
        let (halfClose, permit) = (halfClose, permit)
        return (descriptor.release(), halfClose, permit)
    }
}

/// Checks after EOF if the link to the target still exists. After a lost link, the target did not close the stream.
///
/// The check starts without blocking. It is called once, after EOF. The completion is called once and soon, on any thread,
/// possibly before the check returns. The caller applies a timeout and treats a missing result as a lost link.
package typealias LinkCheck = @Sendable (_ completion: @escaping @Sendable (_ isReachable: Bool) -> Void) -> Void
