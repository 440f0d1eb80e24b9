package import NIOCore
import NIOSSL

/// TLS to servers of the public web, whose certificates must be of an authority that this machine trusts.
package struct PublicTLS: Sendable {
    private let context: NIOSSLContext

    /// Reads the authorities of this machine, which takes milliseconds, so never on an event loop.
    ///
    /// - Throws: `TLSError.unusable`.
    package init() throws {
        var configuration = TLSConfiguration.makeClientConfiguration()
        configuration.minimumTLSVersion = .tlsv12
        // The caller has what it wants, or waits no longer.
        configuration.shutdownTimeout = .milliseconds(100)
        context = try NIOSSLContext.make(configuration)
    }

    /// Adds TLS in front of the handlers of a channel. The handshake fails unless the server has a valid certificate for
    /// the host. Called on the channel's event loop.
    package func secure(_ channel: any Channel, host: String) throws {
        let handler = try NIOSSLClientHandler(context: context, serverHostname: host)
        try channel.pipeline.syncOperations.addHandler(handler, position: .first)
    }
}
