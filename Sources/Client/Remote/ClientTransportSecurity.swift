package import Model
package import NIOCore

/// TLS for connections to brokers on other machines.
///
/// The module `TLS` implements it, and `patchbay` passes it in. This module thus builds without a TLS library.
package protocol ClientTransportSecurity: Sendable {
    /// Adds TLS in front of the handlers of a channel. The handshake fails unless the broker has the pinned key. Called
    /// on the channel's event loop.
    func secure(_ channel: any Channel, pin: KeyPin) throws

    /// Returns the meaning of an error that TLS fired into the channel; nil for any other error.
    func failure(of error: any Error) -> TransportSecurityFailure?
}

/// The reason why TLS ended a connection to a broker.
package enum TransportSecurityFailure: Hashable, Sendable {
    /// The broker has another key than the pinned one. Only the handshake was sent.
    case otherKey
    /// The broker refused the client's key.
    case keyRefused
    /// This process no longer accepts the key of the broker. Nothing was sent.
    case notTrusted
    /// The connection closed without the end of TLS.
    case closed
    case failed(reason: String)
}
