package import Model
package import NIOCore

/// TLS for the connections of a listener.
///
/// Implemented by `ServerTLS` and `MemberServerTLS`, and by the tests, which need no certificates.
package protocol TransportSecurity: Sendable {
    /// Adds TLS in front of the handlers of a channel. Called on the channel's event loop.
    func secure(_ channel: any Channel) throws

    /// Returns the pin of the key that the client proved to hold; nil if the client sent no certificate. Called on the
    /// channel's event loop, after the handshake.
    func clientKey(of channel: any Channel) -> KeyPin?
}

/// TLS of a listener, with the counter of its connections without a grant.
package struct ListenerSecurity: Sendable {
    let transport: any TransportSecurity
    let unauthenticated: UnauthenticatedConnectionLimiter

    package init(_ transport: any TransportSecurity, unauthenticated: UnauthenticatedConnectionLimiter) {
        self.transport = transport
        self.unauthenticated = unauthenticated
    }
}
