package import Model
package import NIOCore
package import NIOSSL

/// TLS 1.3 for the connections of the remote listener.
///
/// A client certificate is optional. A certificate with another key than P-256 fails the handshake.
///
/// No session is resumed, because a resumed one would show the key of its first handshake without a proof (RFC 8446,
/// section 2.2).
package struct ServerTLS: Sendable {
    private let configuration: TLSConfiguration

    /// - Throws: `TLSError.unusable`.
    package init(identity: TLSIdentity) throws {
        var configuration = TLSConfiguration.server(certificate: identity.certificate, key: identity.privateKey)
        configuration.usePinnedKeys()
        self.configuration = configuration
        _ = try NIOSSLContext.make(configuration)
    }

    /// Adds TLS in front of the handlers of a channel. Called on the channel's event loop.
    package func secure(_ channel: any Channel) throws {
        // Each context has its own ticket key, so no other connection accepts its tickets. NIOSSL cannot turn them off.
        let handler = NIOSSLServerHandler(context: try NIOSSLContext.make(configuration)) { chain, promise in
            let isP256 = PinnedKey.spki(of: chain).flatMap(PinnedKey.pin(ofP256:)) != nil
            promise.succeed(isP256 ? .certificateVerified : .failed)
        }
        try channel.pipeline.syncOperations.addHandler(handler, position: .first)
    }

    /// Returns the pin of the key that the client proved to hold; nil if the client sent no certificate. Called on the
    /// channel's event loop, after the handshake.
    package func clientKey(of channel: any Channel) -> KeyPin? {
        guard let certificate = try? channel.pipeline.syncOperations.nioSSL_peerCertificate() else { return nil }
        return PinnedKey.spki(of: [certificate]).flatMap(PinnedKey.pin(ofP256:))
    }
}

extension TLSConfiguration {
    /// Returns the configuration of a server to which a client may send a certificate.
    package static func server(certificate: NIOSSLCertificate, key: NIOSSLPrivateKey) -> TLSConfiguration {
        var configuration = makeServerConfiguration(
            certificateChain: [.certificate(certificate)],
            privateKey: .privateKey(key)
        )
        configuration.certificateVerification = .optionalVerification
        // A client without a common algorithm would send no certificate and be anonymous, instead of being refused.
        configuration.verifySignatureAlgorithms = [
            .ecdsaSecp256R1Sha256, .ecdsaSecp384R1Sha384, .ecdsaSecp521R1Sha512, .ed25519, .rsaPssRsaeSha256,
            .rsaPssRsaeSha384, .rsaPssRsaeSha512,
        ]
        return configuration
    }

    /// Sets TLS 1.3, HTTP/1.1, and no certificate authorities.
    mutating func usePinnedKeys() {
        minimumTLSVersion = .tlsv13
        applicationProtocols = ["http/1.1"]
        trustRoots = .certificates([])
    }
}

extension NIOSSLContext {
    package static func make(_ configuration: TLSConfiguration) throws(TLSError) -> NIOSSLContext {
        do { return try NIOSSLContext(configuration: configuration) } catch {
            throw .unusable(reason: "\(error)")
        }
    }
}
