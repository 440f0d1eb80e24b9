package import Model
package import NIOCore
import NIOSSL
import Synchronization
package import Transport

/// TLS 1.3 to the broker of another host of the team.
///
/// The handshake fails unless the certificate of the broker is of the team, names the expected host, and has the pinned
/// key. `MemberServerTLS` says who verifies what.
package final class MemberClientTLS: Sendable {
    private let context: Mutex<NIOSSLContext>

    /// - Throws: `TLSError.unusable`.
    package init(identity: MemberIdentity) throws(TLSError) { context = Mutex(try Self.context(of: identity)) }

    /// Uses a renewed certificate for the connections from now on.
    ///
    /// - Throws: `TLSError.unusable`.
    package func use(_ identity: MemberIdentity) throws(TLSError) {
        let new = try Self.context(of: identity)
        context.withLock { $0 = new }
    }

    private static func context(of identity: MemberIdentity) throws(TLSError) -> NIOSSLContext {
        var configuration = TLSConfiguration.makeClientConfiguration()
        configuration.useTeam(of: identity)
        // The check below compares the name of the host, which is no DNS name.
        configuration.certificateVerification = .noHostnameVerification
        configuration.certificateChain = [.certificate(identity.certificate)]
        configuration.privateKey = .privateKey(identity.privateKey)
        return try NIOSSLContext.make(configuration)
    }

    /// Adds TLS in front of the handlers of a channel. Called on the channel's event loop.
    ///
    /// - Parameters:
    ///   - channel: A channel without traffic.
    ///   - host: The expected name of the other host.
    ///   - key: The pin of its key: `TeamMember.key`.
    /// - Throws: An error of NIOSSL. The channel gets `TLSError.notAccepted` if the other host is not the expected one.
    package func secure(_ channel: any Channel, to host: HostName, key: KeyPin) throws {
        // NIOSSL marks this function as unstable. It is the only one that keeps BoringSSL's verification.
        let handler = try NIOSSLClientHandler._makeSSLClientHandler(
            context: context.withLock { $0 },
            serverHostname: nil
        ) {
            certificate,
            channel in
            channel.eventLoop.makeCompletedFuture {
                let member = try MemberCertificate(certificate)
                guard member.host == host else {
                    throw TLSError.notAccepted(reason: "it is of the host \(member.host), not of \(host)")
                }
                guard member.pin == key else {
                    throw TLSError.notAccepted(reason: "its key is not the key of the member \(host)")
                }
            }
        }
        try channel.pipeline.syncOperations.addHandler(handler, position: .first)
    }
}
