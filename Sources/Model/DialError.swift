/// Why no stream to a target could be opened, or did not come to its end: the one vocabulary of tunnels, probes, statistics
/// and events.
package struct DialError: Error, Hashable, Sendable, CustomStringConvertible {
    package enum Reason: String, Hashable, Sendable, Codable {
        /// The target is there and nothing listens on that port.
        case refused
        /// The phone is not plugged in.
        case deviceAbsent
        /// usbmuxd is not running.
        case usbmuxdAbsent
        /// No answer before the deadline.
        case timedOut
        /// The network says that there is no way to that address.
        case unreachable
        /// The endpoint is unknown, offline, or has no route.
        case noRoute
        /// Too many connections are open or waiting already.
        case limit
        /// The address is one that Patchbay does not dial (its own listener, or not where the endpoint was seen).
        case forbidden
        /// The client belongs to another user than the tunnel, or nobody can say to whom.
        case foreignUser
        /// The client sent an HTTP request that a web page may have sent.
        case browser
        /// The phone or usbmuxd went in the middle of the stream.
        case cut
        /// Anything else; the description says what.
        case failed
    }

    package let reason: Reason
    /// A sentence for a person: what happened to which thing, and what to try.
    package let description: String

    package init(_ reason: Reason, _ description: String) {
        self.reason = reason
        self.description = description
    }
}

/// One connection through a tunnel that did not come about: the `failure` event of a held tunnel.
package struct TunnelConnectionFailure: Hashable, Sendable, Codable {
    /// The tunnel's id.
    package let tunnel: String
    package let reason: DialError.Reason
    /// A sentence for a person.
    package let detail: String

    package init(tunnel: String, reason: DialError.Reason, detail: String) {
        self.tunnel = tunnel
        self.reason = reason
        self.detail = detail
    }
}
