/// The reason why a connection to a target failed or was lost. Tunnels, probes, statistics and events share these
/// values.
package struct DialError: Error, Hashable, Sendable, CustomStringConvertible {
    package enum Reason: String, Hashable, Sendable, Codable {
        /// The target is reachable, but no server listens on the port.
        case refused
        /// The phone is not connected.
        case deviceAbsent
        /// usbmuxd is not running.
        case usbmuxdAbsent
        /// The target did not respond before the timeout.
        case timedOut
        /// The network has no route to the address.
        case unreachable
        /// The endpoint is unknown, offline, or has no route.
        case noRoute
        /// The limit of open or pending connections is reached.
        case limit
        /// Patchbay does not dial this address: it is its own listener, or no source reported the endpoint there.
        case forbidden
        /// The client belongs to another user than the tunnel, or its user cannot be determined.
        case foreignUser
        /// Another client has the lease of the target.
        case leased
        /// The client sent an HTTP request that a web page could have sent.
        case browser
        /// The phone or usbmuxd disconnected during the stream.
        case linkLost
        /// Any other error. The description has the details.
        case failed
    }

    package let reason: Reason
    /// A sentence that says which target failed, why, and what to do next.
    package let description: String

    package init(_ reason: Reason, _ description: String) {
        self.reason = reason
        self.description = description
    }
}

/// A failed connection through a tunnel: the `failure` event of an ephemeral tunnel.
package struct TunnelConnectionFailure: Hashable, Sendable, Codable {
    /// The ID of the tunnel.
    package let tunnel: String
    package let reason: DialError.Reason
    /// The error as a sentence.
    package let detail: String

    package init(tunnel: String, reason: DialError.Reason, detail: String) {
        self.tunnel = tunnel
        self.reason = reason
        self.detail = detail
    }
}
