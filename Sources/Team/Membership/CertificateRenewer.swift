import FoundationEssentials
import Logging
import Model
import ServiceLifecycle
import Synchronization
import SystemIO
import Transport

/// The key and the certificate that the broker uses, and what presents them.
final class IdentityInUse: Sendable {
    private let current: Mutex<MemberIdentity>
    private let apply: @Sendable (MemberIdentity) throws -> Void

    /// - Parameters:
    ///   - identity: The identity at the start.
    ///   - apply: Lets the parts with connections use a renewed certificate.
    init(_ identity: MemberIdentity, apply: @escaping @Sendable (MemberIdentity) throws -> Void) {
        current = Mutex(identity)
        self.apply = apply
    }

    var identity: MemberIdentity { current.withLock { $0 } }

    /// Uses another certificate of the same host and key for the connections from now on. Open ones stay.
    func use(_ identity: MemberIdentity) throws {
        try apply(identity)
        current.withLock { $0 = identity }
    }
}

/// Renews the certificate of this host at two thirds of its lifetime, and applies a renewed one without a restart.
///
/// The key stays, so the other hosts notice nothing. A renewed certificate of the authority comes with it. An expired certificate is renewed by `patchbay team join` only,
/// because the authority accepts no connection with it.
struct CertificateRenewer: Service {
    /// The time between two checks. A third of a year is left for the renewal.
    private static let interval = Duration.seconds(3_600)

    let file: MemberIdentityFile
    let inUse: IdentityInUse
    /// Returns a new certificate for a signing request.
    let renewal: @Sendable (_ request: String) async throws -> TeamRenewal
    var now: @Sendable () -> Date = { Date() }
    var clock: any Clock<Duration> = PollerClock()
    let logger: Logger

    func run() async throws {
        await cancelWhenGracefulShutdown {
            while !Task.isCancelled {
                do { try await check() } catch {
                    logger.warning(
                        "cannot renew the certificate of this host in its team",
                        metadata: ["reason": "\(error)", "ends": "\(inUse.identity.expiresAt.formatted(.iso8601))"]
                    )
                }
                try? await clock.sleep(for: Self.interval)
            }
        }
    }

    /// Applies a certificate that a command has saved, and renews one that is due.
    func check() async throws {
        let used = inUse.identity
        guard let saved = try file.load(), saved.host == used.host, saved.pin == used.pin,
            CertificateAuthority.isSame(saved.authorityPEM, used.authorityPEM)
        else { return }
        if saved.certificatePEM != used.certificatePEM { try inUse.use(saved) }
        guard now() >= saved.renewsAt else { return }
        let key = try CertificateKey(pem: saved.keyPEM)
        let renewal = try await renewal(try key.signingRequest())
        let renewed = try MemberIdentity(
            key: key,
            certificate: renewal.certificate,
            authority: renewal.authority ?? saved.authorityPEM
        )
        guard renewed.host == saved.host, renewed.expiresAt > saved.expiresAt,
            CertificateAuthority.isSame(renewed.authorityPEM, saved.authorityPEM)
        else {
            throw TLSError.notAccepted(reason: "it is of another host or team, or ends no later")
        }
        try file.save(renewed)
        try inUse.use(renewed)
        logger.notice(
            "renewed the certificate of this host in its team",
            metadata: ["ends": "\(renewed.expiresAt.formatted(.iso8601))"]
        )
    }
}
