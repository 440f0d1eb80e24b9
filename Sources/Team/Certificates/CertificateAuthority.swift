import Crypto
package import FoundationEssentials
package import Model
import SwiftASN1
import SystemIO
package import Transport
import X509

/// The certificate authority of a team: a P-256 key that signs the certificates of its hosts and of etcd.
///
/// It signs no further authorities (path length 0).
package struct CertificateAuthority: Sendable {
    /// The certificate of the authority, as PEM. Every host of the team has it.
    package let certificatePEM: String
    /// The private key (PKCS #8), as PEM. A secret.
    package let keyPEM: String

    let certificate: Certificate
    let key: Certificate.PrivateKey

    /// The lifetime of the authority's certificate in years. The authority renews it after half of them.
    private static let years = 20

    /// Creates the authority of a new team, named "Patchbay team NAME".
    ///
    /// - Throws: `TLSError.unusable`.
    package init(creatingFor team: SanitizedText, now: Date = Date()) throws(TLSError) {
        do {
            let name = try DistinguishedName { CommonName("Patchbay team \(team)") }
            try self.init(name, key: P256.Signing.PrivateKey(), from: CertificateDates.start(now))
        } catch {
            throw .unusable(reason: "the certificate authority could not be created (\(error))")
        }
    }

    private init(_ name: DistinguishedName, key: P256.Signing.PrivateKey, from start: Date) throws {
        let signer = Certificate.PrivateKey(key)
        certificate = try Certificate(
            version: .v3,
            serialNumber: Certificate.SerialNumber(),
            publicKey: signer.publicKey,
            notValidBefore: start,
            notValidAfter: CertificateDates.end(years: Self.years, after: start),
            issuer: name,
            subject: name,
            signatureAlgorithm: .ecdsaWithSHA256,
            extensions: Certificate.Extensions {
                Critical(BasicConstraints.isCertificateAuthority(maxPathLength: 0))
                Critical(KeyUsage(keyCertSign: true, cRLSign: true))
                SubjectKeyIdentifier(hash: signer.publicKey)
            },
            issuerPrivateKey: signer
        )
        self.key = signer
        certificatePEM = try certificate.serializeAsPEM().pemString + "\n"
        keyPEM = key.pemRepresentation + "\n"
    }

    /// Returns the authority with a new certificate, if half of the lifetime of the present one is over; nil otherwise.
    ///
    /// Key and name stay, so certificates from before and after are accepted with either certificate of the authority.
    /// A certificate for etcd, which needs a person, is valid for ten years. So each ends with or before the certificate of
    /// the authority beside which it was saved.
    ///
    /// - Throws: `TLSError.unusable`.
    func renewed(at now: Date) throws(TLSError) -> CertificateAuthority? {
        let lifetime = certificate.notValidAfter.timeIntervalSince(certificate.notValidBefore)
        guard now >= certificate.notValidBefore.addingTimeInterval(lifetime / 2) else { return nil }
        do {
            let key = try P256.Signing.PrivateKey(pemRepresentation: keyPEM)
            return try CertificateAuthority(certificate.subject, key: key, from: CertificateDates.start(now))
        } catch {
            throw .unusable(reason: "the certificate of the authority could not be renewed (\(error))")
        }
    }

    /// Returns whether two certificates, as PEM, are of the same authority.
    static func isSame(_ one: String, _ other: String) -> Bool {
        guard let one = try? Certificate(pemEncoded: one), let other = try? Certificate(pemEncoded: other) else {
            return false
        }
        return one.publicKey == other.publicKey && one.subject == other.subject
    }

    /// Parses an authority.
    ///
    /// - Throws: An error of the libraries, or `IdentityMismatch` if the key is not that of the certificate.
    init(certificatePEM: String, keyPEM: String) throws {
        let certificate = try Certificate(pemEncoded: certificatePEM)
        let key = Certificate.PrivateKey(try P256.Signing.PrivateKey(pemRepresentation: keyPEM))
        guard key.publicKey == certificate.publicKey,
            case .isCertificateAuthority = try certificate.extensions.basicConstraints
        else { throw IdentityMismatch() }
        self.certificate = certificate
        self.key = key
        self.certificatePEM = certificatePEM
        self.keyPEM = keyPEM
    }

    /// The end of the authority's certificate.
    package var expiresAt: Date { certificate.notValidAfter }
}

/// The dates of new certificates.
enum CertificateDates {
    /// The beginning of a new certificate: a day ago, for peers with a clock that is behind.
    static func start(_ now: Date = Date()) -> Date { now.addingTimeInterval(-tolerance) }

    /// Returns the seconds by which the clock of a reader at `now` was behind that of the authority at the issue, or more.
    static func delay(of now: Date, to start: Date) -> Int { Int(start.timeIntervalSince(now) + tolerance) }

    private static let tolerance: TimeInterval = 86_400

    static func end(years: Int, after start: Date) -> Date {
        start.addingTimeInterval(Double(years) * 365.25 * 86_400)
    }
}

/// The files of an authority in the team's folder: `ca.pem` and `ca-key.pem`, both with mode 0600.
package struct CertificateAuthorityFiles: Sendable {
    package let certificatePath: String
    package let keyPath: String

    package init(in folder: String) {
        certificatePath = "\(folder)/ca.pem"
        keyPath = "\(folder)/ca-key.pem"
    }

    /// Loads the authority; nil on a host that does not have its key.
    ///
    /// - Throws: `TLSError`, also if another user may have read or replaced a file.
    package func load() throws(TLSError) -> CertificateAuthority? {
        guard let key = try PrivateFile.read(keyPath) else { return nil }
        guard let certificate = try PrivateFile.read(certificatePath) else {
            throw .damaged(path: certificatePath, reason: "it is missing, and \(keyPath) exists")
        }
        do { return try CertificateAuthority(certificatePEM: certificate, keyPEM: key) } catch {
            throw .damaged(path: keyPath, reason: "\(error)")
        }
    }

    /// Saves a new authority. The certificate is written first: only with the key the authority exists.
    ///
    /// - Throws: `TLSError.notSaved`.
    package func save(_ authority: CertificateAuthority) throws(TLSError) {
        try PrivateFile.write(certificatePath, authority.certificatePEM.utf8)
        try PrivateFile.write(keyPath, authority.keyPEM.utf8)
    }
}
