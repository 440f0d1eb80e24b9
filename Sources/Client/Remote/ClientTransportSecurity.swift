package import Model
package import NIOCore
package import Transport

/// TLS for connections to brokers on other machines.
package protocol ClientTransportSecurity: Sendable {
    /// Adds TLS in front of the handlers of a channel. The handshake fails unless the broker has the pinned key. Called
    /// on the channel's event loop.
    func secure(_ channel: any Channel, pin: KeyPin) throws

    /// Returns the meaning of an error that TLS fired into the channel; nil for any other error.
    func failure(of error: any Error) -> ClientFailure?
}

extension ClientTransportSecurity {
    package func failure(of error: any Error) -> ClientFailure? { ClientFailure(error) }
}

extension ClientTLS: ClientTransportSecurity {}
