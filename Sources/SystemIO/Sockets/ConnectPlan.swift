package import Model

/// The way in which an event loop opens a stream to one route, without a task.
///
/// A plan is an immutable snapshot: the address and the peer's identity were looked up before. The loop connects, makes
/// the handshake, and verifies the peer. If a failure has no `reason`, the snapshot may be old. The caller then dials with
/// `Dialer.dial`, which looks everything up again.
package struct ConnectPlan: Sendable {
    /// The first messages of a stream, before the peer's own bytes.
    package struct Handshake: Sendable {
        package enum Result: Hashable, Sendable {
            /// The bytes are the beginning of a reply.
            case incomplete
            /// The reply has this length in bytes. The peer's own bytes follow.
            case accepted(length: Int)
            /// The reply is a refusal, with the peer's code if it has one.
            case rejected(code: UInt32?)
        }

        package let request: [UInt8]
        /// Evaluates every byte received so far. Called on the loop's thread.
        package let evaluate: @Sendable (UnsafeRawBufferPointer) -> Result
        /// True if the expected peer accepted the connected socket. Called after the reply.
        package let verify: @Sendable (CInt) -> Bool

        package init(
            request: [UInt8],
            evaluate: @escaping @Sendable (UnsafeRawBufferPointer) -> Result,
            verify: @escaping @Sendable (CInt) -> Bool
        ) {
            self.request = request
            self.evaluate = evaluate
            self.verify = verify
        }
    }

    package enum Failure: Error, Hashable, Sendable {
        /// The connect failed with this errno.
        case system(CInt)
        /// The peer refused the handshake with this code.
        case rejected(code: UInt32)
    }

    package let route: Route
    package let address: SocketAddress
    /// Nil if the connection itself is the stream.
    package let handshake: Handshake?
    package let halfClose: Connection.HalfClose
    package let linkChecker: (any LinkChecker)?
    /// The time for the connection and the handshake.
    package let timeout: Duration
    /// The error for a connection or a handshake that exceeds the timeout.
    package let timeoutError: DialError
    /// Plans with the same key share the limits of connects in flight; nil if there is no limit.
    package let limitKey: ConnectLimitKey?
    /// Returns a permit for a new stream, before the connection; nil if none is free. The stream keeps the permit until
    /// its close.
    package var acquirePermit: (@Sendable () -> (any Sendable)?)?
    /// Returns the final reason for a failure; nil if only `Dialer.dial` can give one.
    package var reason: (@Sendable (Failure) async -> DialError?)?
    /// Returns false if the address may not be used now. Called before the connection and after it.
    package var isAllowed: (@Sendable () -> Bool)?
    /// Returns a value that the connected stream keeps until its close.
    package var retained: (@Sendable () -> any Sendable)?

    package init(
        route: Route,
        address: SocketAddress,
        handshake: Handshake? = nil,
        halfClose: Connection.HalfClose = .propagates,
        linkChecker: (any LinkChecker)? = nil,
        timeout: Duration,
        timeoutError: DialError,
        limitKey: ConnectLimitKey? = nil,
        acquirePermit: (@Sendable () -> (any Sendable)?)? = nil
    ) {
        self.route = route
        self.address = address
        self.handshake = handshake
        self.halfClose = halfClose
        self.linkChecker = linkChecker
        self.timeout = timeout
        self.timeoutError = timeoutError
        self.limitKey = limitKey
        self.acquirePermit = acquirePermit
    }
}

/// The server and the device whose connects in flight are limited.
package struct ConnectLimitKey: Hashable, Sendable {
    /// The address of the server that accepts the connections, such as usbmuxd.
    package let server: String
    /// The device behind the server.
    package let device: UInt32

    package init(server: SocketAddress, device: UInt32) {
        self.server = "\(server)"
        self.device = device
    }
}
