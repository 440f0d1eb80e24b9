package import Model

/// Makes plans for streams to routes.
package protocol ConnectPlanner: Sendable {
    /// Returns the way to open a stream to a route now.
    ///
    /// - Throws: The reason why the route cannot be dialed.
    func plan(for route: Route) async throws(DialError) -> ConnectPlan
}

/// The way in which the connector opens a stream to one route.
///
/// A plan is an immutable snapshot: the address and the peer's identity were looked up before. The connector connects,
/// makes the handshake, and verifies the peer. After a failure, `recover` gives the reason or a new plan.
package final class ConnectPlan: Sendable {
    package enum Method: Sendable {
        /// connect(2) on the connector's thread. Without a handshake, the connection itself is the stream.
        case socket(SocketAddress, Handshake? = nil)
        /// A call on a task, for streams that no connect(2) of this process opens.
        case task(@Sendable () async throws -> Connection)
    }

    /// The first messages of a stream, before the peer's own bytes.
    package final class Handshake: Sendable {
        package enum Result: Hashable, Sendable {
            /// The bytes are the beginning of a reply.
            case incomplete
            /// The reply has this length in bytes. The peer's own bytes follow.
            case accepted(length: Int)
            /// The reply is a refusal, or is invalid.
            case failed(AttemptFailure)
        }

        /// The requests. Each is sent after the reply to the one before, and there is at least one.
        package let requests: [[UInt8]]
        /// Evaluates the bytes received since the last request. Called on the connector's thread.
        package let evaluate: @Sendable (UnsafeRawBufferPointer) -> Result
        /// True if the expected peer accepted the connected socket. Called after the last reply.
        package let verify: @Sendable (CInt) -> Bool

        package init(
            requests: [[UInt8]],
            evaluate: @escaping @Sendable (UnsafeRawBufferPointer) -> Result,
            verify: @escaping @Sendable (CInt) -> Bool
        ) {
            self.requests = requests
            self.evaluate = evaluate
            self.verify = verify
        }
    }

    package enum AttemptFailure: Error, Hashable, Sendable {
        /// The connect failed with this errno.
        case system(CInt)
        /// The peer refused the handshake with this code.
        case rejected(code: UInt32)
        /// The peer refused the handshake with this reason.
        case refused(SanitizedText)
        /// The peer closed without a reply, gave an invalid one, or is not the expected peer.
        case closed
        case timedOut
        /// No permit became free before the timeout.
        case noPermit
        /// `isAllowed` returned false.
        case forbidden
    }

    /// The way to find out whether something listens at the target, without its use.
    package enum ListenerCheck: Sendable {
        /// There is no way.
        case none
        /// Reads a list of listening sockets. Returns the reason if nothing listens, and nil also if that is unknown.
        case list(@Sendable () async -> DialError?)
        /// A connection that is closed without a byte, unless the function returns false.
        case connection(isAllowed: @Sendable () -> Bool)
    }

    /// Decides about a failed attempt; the first attempt is number 1. Returns the plan of the next attempt.
    package typealias Recovery = @Sendable (AttemptFailure, _ attempt: Int) async throws(DialError) -> ConnectPlan

    /// Nil if the planner does not know the route.
    package let route: Route?
    package let method: Method
    package let halfClose: Connection.HalfClose
    package let linkCheck: LinkCheck?
    /// The time for the connection and the handshake.
    package let timeout: Duration
    /// Plans with the same key share the limits of connects in flight; nil if there is no limit.
    package let limitKey: ConnectLimitKey?
    package let recover: Recovery
    /// Returns a permit for a new stream, before the connection; nil if none is free. The stream keeps the permit until
    /// its close.
    package let acquirePermit: (@Sendable () -> (any Sendable)?)?
    /// Returns false if the address may not be used now. Called before the connection and after it.
    package let isAllowed: (@Sendable () -> Bool)?
    package let listenerCheck: ListenerCheck
    /// Returns a value that the connected stream keeps until its close.
    package let retained: (@Sendable () -> any Sendable)?

    package init(
        route: Route?,
        method: Method,
        halfClose: Connection.HalfClose = .propagates,
        linkCheck: LinkCheck? = nil,
        timeout: Duration,
        limitKey: ConnectLimitKey? = nil,
        acquirePermit: (@Sendable () -> (any Sendable)?)? = nil,
        isAllowed: (@Sendable () -> Bool)? = nil,
        listenerCheck: ListenerCheck = .none,
        retained: (@Sendable () -> any Sendable)? = nil,
        recover: @escaping Recovery
    ) {
        self.route = route
        self.method = method
        self.halfClose = halfClose
        self.linkCheck = linkCheck
        self.timeout = timeout
        self.limitKey = limitKey
        self.acquirePermit = acquirePermit
        self.isAllowed = isAllowed
        self.listenerCheck = listenerCheck
        self.retained = retained
        self.recover = recover
    }

    /// Creates a plan for a stream that `open` opens. `open` has its own timeout and retries.
    package convenience init(route: Route?, opening open: @escaping @Sendable () async throws -> Connection) {
        self.init(route: route, method: .task(open), timeout: .zero) { failure, _ throws(DialError) in
            throw DialError(.failed, "the target could not be reached: \(failure)")
        }
    }

    /// Returns the plan with another permit, another check, or another value that the stream keeps.
    package func with(
        acquirePermit: (@Sendable () -> (any Sendable)?)? = nil,
        listenerCheck: ListenerCheck? = nil,
        retained: (@Sendable () -> any Sendable)? = nil
    ) -> ConnectPlan {
        ConnectPlan(
            route: route,
            method: method,
            halfClose: halfClose,
            linkCheck: linkCheck,
            timeout: timeout,
            limitKey: limitKey,
            acquirePermit: acquirePermit ?? self.acquirePermit,
            isAllowed: isAllowed,
            listenerCheck: listenerCheck ?? self.listenerCheck,
            retained: retained ?? self.retained,
            recover: recover
        )
    }

    package var usesNetwork: Bool { route?.isNetwork == true }
}

/// The server and the device whose connects in flight are limited.
package struct ConnectLimitKey: Hashable, Sendable {
    /// The server that accepts the connections, such as a run of usbmuxd.
    package let server: ObjectIdentifier
    /// The device behind the server.
    package let device: UInt32

    package init(server: AnyObject, device: UInt32) {
        self.server = ObjectIdentifier(server)
        self.device = device
    }
}
