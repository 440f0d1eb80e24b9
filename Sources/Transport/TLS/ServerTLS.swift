import FoundationEssentials
package import Model
package import NIOCore
package import NIOSSL
import Synchronization

/// TLS 1.3 for the connections of the remote listener.
///
/// A client certificate is optional. A certificate with another key than P-256 fails the handshake.
///
/// A client that asks for a name of the owner's own certificate gets that one. All others get the pinned key. So do
/// Patchbay's own clients, which ask for no name. Files and names are looked at when a client connects, so nothing polls.
///
/// No session is resumed, because a resumed one would show the key of its first handshake without a proof (RFC 8446,
/// section 2.2).
package final class ServerTLS: Sendable {
    struct State {
        var certificate: ServerCertificate
        var file: FileCertificate?
        var version: CertificateFiles.Version?
        var problem: String?
        /// The last reason that was reported.
        var reported: String?
        var checkedAt: ContinuousClock.Instant
    }

    private let identity: TLSIdentity
    private let files: CertificateFiles?
    private let names: @Sendable () -> [String]
    /// Gets each reason once for which the owner's certificate or its files are of no use.
    private let report: @Sendable (String) -> Void
    private let state: Mutex<State>

    /// The minimum time between two looks at the names and the files.
    private static let pause = Duration.seconds(1)

    /// - Parameters:
    ///   - identity: The pinned key.
    ///   - files: The owner's own certificate; nil without one.
    ///   - report: Gets each reason once for which the owner's certificate or its files are of no use.
    ///   - names: Returns the names and addresses of the machine.
    /// - Throws: `TLSError.unusable`, `TLSError.notIssued`.
    package init(
        identity: TLSIdentity,
        files: CertificateFiles? = nil,
        report: @escaping @Sendable (String) -> Void = { _ in },
        names: @escaping @Sendable () -> [String] = { ["localhost"] }
    ) throws {
        (self.identity, self.files, self.names, self.report) = (identity, files, names, report)
        let certificate = try ServerCertificate(for: identity, names: names())
        _ = try NIOSSLContext.make(.server([certificate.certificate], identity.privateKey))
        state = Mutex(State(certificate: certificate, checkedAt: .now - Self.pause))
    }

    /// Issues the certificate again if the names have changed, and reads the files again if they have.
    func refreshed(now: Date = Date()) -> State {
        state.withLock { state in
            defer {
                let isOver = state.file.map { $0.expiresAt <= now } ?? false
                let reason = isOver ? "the certificate has expired, and clients refuse it" : state.problem
                if let reason, reason != state.reported { report(reason) }
                state.reported = reason
            }
            guard state.checkedAt.duration(to: .now) >= Self.pause else { return state }
            state.checkedAt = .now
            let names = ServerCertificate.valid(names())
            if names != state.certificate.names || state.certificate.isOld(now),
                let certificate = try? ServerCertificate(for: identity, names: names, now: now)
            {
                state.certificate = certificate
            }
            if let files, files.version != state.version {
                state.version = files.version
                do {
                    (state.file, state.problem) = (try files.load(now: now), nil)
                } catch { state.problem = "\(error)" }
            }
            return state
        }
    }

    /// Adds TLS in front of the handlers of a channel. Called on the channel's event loop.
    package func secure(_ channel: any Channel) throws {
        let state = refreshed()
        var configuration = TLSConfiguration.server([state.certificate.certificate], identity.privateKey)
        configuration.usePinnedKeys()
        if let file = state.file {
            configuration.sslContextCallback = { client, promise in
                var change = NIOSSLContextConfigurationOverride()
                if let host = client.serverHostname, file.isFor(host) {
                    change.certificateChain = file.chain.map { .certificate($0) }
                    change.privateKey = .privateKey(file.key)
                }
                promise.succeed(change)
            }
        }
        // Each context has its own ticket key, so no other connection accepts its tickets. NIOSSL cannot turn them off.
        let handler = NIOSSLServerHandler(context: try NIOSSLContext.make(configuration)) { chain, promise in
            let isP256 = PinnedKey.spki(of: chain).flatMap(PinnedKey.pin(ofP256:)) != nil
            promise.succeed(isP256 ? .certificateVerified : .failed)
        }
        try channel.pipeline.syncOperations.addHandler(handler, position: .first)
    }

    /// The certificates, as a client would get them now.
    package var certificates: RemoteCertificates {
        let state = refreshed()
        return RemoteCertificates(
            names: state.certificate.names,
            expiresAt: state.certificate.expiresAt,
            authority: state.certificate.authority,
            configured: state.file.map { .init(names: $0.names, expiresAt: $0.expiresAt) },
            problem: state.problem
        )
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
    package static func server(_ chain: [NIOSSLCertificate], _ key: NIOSSLPrivateKey) -> TLSConfiguration {
        var configuration = makeServerConfiguration(
            certificateChain: chain.map { .certificate($0) },
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
