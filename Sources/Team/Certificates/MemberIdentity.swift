package import FoundationEssentials
package import Model
import NIOSSL
import SwiftASN1
package import Transport
import X509

/// The key of a host with its certificate, and the certificate of the team's authority.
package struct MemberIdentity: Sendable {
    /// The name in the certificate.
    package let host: HostName
    /// The pin of the key, as in the host's `TeamMember`.
    package let pin: KeyPin
    /// The private key (PKCS #8), as PEM. A secret.
    package let keyPEM: String
    /// The host's certificate, as PEM.
    package let certificatePEM: String
    /// The certificate of the team's authority, as PEM.
    package let authorityPEM: String
    /// The beginning of the host's certificate: a day before its issue.
    package let startsAt: Date
    /// The end of the host's certificate.
    package let expiresAt: Date
    /// The time from which the host renews its certificate: two thirds of the lifetime.
    package let renewsAt: Date

    let certificate: NIOSSLCertificate
    let privateKey: NIOSSLPrivateKey
    let authority: NIOSSLCertificate

    /// Checks that the certificate is for the key and from the authority.
    ///
    /// The dates are not checked, so that `patchbay team status` can show an expired certificate. Peers check them.
    ///
    /// - Throws: `TLSError.notAccepted`.
    package init(key: CertificateKey, certificate pem: String, authority authorityPEM: String) throws(TLSError) {
        do {
            let certificate = try Certificate(pemEncoded: pem)
            let authority = try Certificate(pemEncoded: authorityPEM)
            guard key.matches(certificate) else { throw TLSError.notAccepted(reason: "it is for another key") }
            guard certificate.issuer == authority.subject,
                authority.publicKey.isValidSignature(certificate.signature, for: certificate)
            else { throw TLSError.notAccepted(reason: "it is not from the authority of the team") }
            self.certificate = try NIOSSLCertificate(bytes: Array(pem.utf8), format: .pem)
            self.authority = try NIOSSLCertificate(bytes: Array(authorityPEM.utf8), format: .pem)
            privateKey = try NIOSSLPrivateKey(bytes: Array(key.pem.utf8), format: .pem)
            host = try MemberCertificate(self.certificate).host
            startsAt = certificate.notValidBefore
            expiresAt = certificate.notValidAfter
            let lifetime = certificate.notValidAfter.timeIntervalSince(certificate.notValidBefore)
            renewsAt = certificate.notValidBefore.addingTimeInterval(lifetime * 2 / 3)
        } catch let error as TLSError {
            throw error
        } catch {
            throw .notAccepted(reason: "\(error)")
        }
        pin = key.pin
        keyPEM = key.pem
        certificatePEM = pem
        self.authorityPEM = authorityPEM
    }
}

/// The name and the key in the certificate of a host. Does not verify the certificate.
struct MemberCertificate {
    let host: HostName
    let pin: KeyPin

    /// - Throws: `TLSError.notAccepted`.
    init(_ certificate: NIOSSLCertificate) throws(TLSError) {
        guard let key = PinnedKey.spki(of: [certificate]).flatMap(PinnedKey.pin(ofP256:)) else {
            throw .notAccepted(reason: "its key is not a P-256 key")
        }
        guard let bytes = try? certificate.toDERBytes(), let parsed = try? Certificate(derEncoded: bytes) else {
            throw .notAccepted(reason: "it cannot be read")
        }
        guard case .notCertificateAuthority? = try? parsed.extensions.basicConstraints else {
            throw .notAccepted(reason: "it is not a certificate of a host")
        }
        // Exactly one name, so that no reader takes another one.
        let attributes = parsed.subject.flatMap { Array($0) }
        guard attributes.count == 1, attributes[0].type == .RDNAttributeType.commonName,
            let name = String(attributes[0].value), let host = HostName(name), name != CertificateAuthority.etcdRootUser
        else { throw .notAccepted(reason: "its name is not the name of a host") }
        self.host = host
        pin = key
    }
}
