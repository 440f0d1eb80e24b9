package import Model
package import NIOCore
import NIOSSL
import Synchronization
package import Transport

/// TLS 1.3 for the connections of the team listener.
///
/// A client certificate is optional, because a host that joins has none. A certificate that is not of the team, has
/// expired, or is not for clients fails the handshake.
///
/// BoringSSL verifies the chain to the team's authority, the dates, and the uses. A second check then reads the name and
/// the key from the verified certificate, before any byte of the application. Patchbay has no verification of its own,
/// because one of the most used implementations has fewer errors than a new one.
///
/// No session is resumed, for the reason of `ServerTLS`.
package final class MemberServerTLS: Sendable {
    private let configuration: Mutex<TLSConfiguration>

    /// - Throws: `TLSError.unusable`.
    package init(identity: MemberIdentity) throws(TLSError) {
        configuration = Mutex(try Self.configuration(of: identity))
    }

    /// Uses a renewed certificate for the connections from now on.
    ///
    /// - Throws: `TLSError.unusable`.
    package func use(_ identity: MemberIdentity) throws(TLSError) {
        let new = try Self.configuration(of: identity)
        configuration.withLock { $0 = new }
    }

    private static func configuration(of identity: MemberIdentity) throws(TLSError) -> TLSConfiguration {
        var configuration = TLSConfiguration.server([identity.certificate], identity.privateKey)
        configuration.useTeam(of: identity)
        _ = try NIOSSLContext.make(configuration)
        return configuration
    }

    /// Adds TLS in front of the handlers of a channel. Called on the channel's event loop.
    package func secure(_ channel: any Channel) throws {
        // Each context has its own ticket key, so no other connection accepts its tickets. NIOSSL cannot turn them off.
        let context = try NIOSSLContext.make(configuration.withLock { $0 })
        // NIOSSL marks this function as unstable. It is the only one that keeps BoringSSL's verification.
        let handler = NIOSSLServerHandler._makeSSLServerHandler(context: context) { certificate, channel in
            channel.eventLoop.makeCompletedFuture { _ = try MemberCertificate(certificate) }
        }
        try channel.pipeline.syncOperations.addHandler(handler, position: .first)
    }

    /// Returns the host in the client's verified certificate, and the pin of the key that the client proved to hold.
    /// Nil if the client sent no certificate.
    ///
    /// Called on the channel's event loop, after the handshake. The caller compares both with the members of the team.
    package func host(of channel: any Channel) -> (host: HostName, key: KeyPin)? {
        guard let certificate = try? channel.pipeline.syncOperations.nioSSL_peerCertificate(),
            let member = try? MemberCertificate(certificate)
        else { return nil }
        return (member.host, member.pin)
    }

    /// Returns the pin of the client's key, as `ServerTLS` does.
    package func clientKey(of channel: any Channel) -> KeyPin? { host(of: channel)?.key }
}

extension TLSConfiguration {
    /// Sets TLS 1.3, HTTP/1.1, and the authority of a team as the only one.
    mutating func useTeam(of identity: MemberIdentity) {
        minimumTLSVersion = .tlsv13
        applicationProtocols = ["http/1.1"]
        trustRoots = .certificates([identity.authority])
    }
}
