package import Model
package import NIOCore
import NIOSSL

/// TLS 1.3 to a broker with a pinned key.
package struct ClientTLS: Sendable {
    private let context: NIOSSLContext

    /// - Parameter identity: The client's own key; nil for a client that uses a token.
    /// - Throws: `TLSError.unusable`.
    package init(identity: TLSIdentity?) throws {
        var configuration = TLSConfiguration.makeClientConfiguration()
        configuration.usePinnedKeys()
        // The custom verification replaces this one, which must not be `.none`.
        configuration.certificateVerification = .noHostnameVerification
        if let identity {
            configuration.certificateChain = [.certificate(identity.certificate)]
            configuration.privateKey = .privateKey(identity.privateKey)
        }
        context = try NIOSSLContext.make(configuration)
    }

    /// Adds TLS in front of the handlers of a channel. The handshake fails unless the broker has the pinned key. Called
    /// on the channel's event loop.
    package func secure(_ channel: any Channel, pin: KeyPin) throws {
        let handler = try NIOSSLClientHandler(context: context, serverHostname: nil) { chain, promise in
            let isPinned = PinnedKey.spki(of: chain).map { PinnedKey.matches(spki: $0, pin: pin) } ?? false
            promise.succeed(isPinned ? .certificateVerified : .failed)
        }
        try channel.pipeline.syncOperations.addHandler(handler, position: .first)
    }
}
