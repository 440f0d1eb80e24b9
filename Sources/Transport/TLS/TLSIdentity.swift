import Crypto
import FoundationEssentials
package import Model
import NIOSSL
import SwiftASN1
import X509

/// A P-256 key with its self-signed certificate: the identity of a broker or of a client.
///
/// Peers compare only the pin. The certificate exists because TLS sends keys in certificates.
package struct TLSIdentity: Sendable {
    /// The pin of the public key.
    package let pin: KeyPin
    let certificate: NIOSSLCertificate
    let privateKey: NIOSSLPrivateKey
    /// The key, to sign with it.
    let key: P256.Signing.PrivateKey
    /// The key (PKCS #8) and the certificate, as a key file has them. A secret.
    let pem: String

    /// The lifetime of a certificate in years. Peers do not check the dates.
    private static let years = 20

    /// Creates a new key and its certificate.
    ///
    /// - Throws: `TLSError.unusable`.
    package init() throws {
        do {
            let key = P256.Signing.PrivateKey()
            let certificate = try Self.certificate(for: key)
            try self.init(pem: "\(key.pemRepresentation)\n\(certificate.serializeAsPEM().pemString)\n")
        } catch {
            throw TLSError.unusable(reason: "a certificate could not be created (\(error))")
        }
    }

    /// Parses a P-256 key and its certificate.
    ///
    /// - Throws: An error of the libraries, or `IdentityMismatch`.
    init(pem: String) throws {
        let documents = try PEMDocument.parseMultiple(pemString: pem)
        guard documents.map(\.discriminator) == ["PRIVATE KEY", "CERTIFICATE"] else { throw IdentityMismatch() }
        key = try P256.Signing.PrivateKey(derRepresentation: documents[0].derBytes)
        certificate = try NIOSSLCertificate(bytes: documents[1].derBytes, format: .der)
        privateKey = try NIOSSLPrivateKey(bytes: documents[0].derBytes, format: .der)
        let spki = Array(key.publicKey.derRepresentation)
        guard let pin = PinnedKey.pin(ofP256: spki), PinnedKey.spki(of: [certificate]) == spki else {
            throw IdentityMismatch()
        }
        self.pin = pin
        self.pem = pem
    }

    private static func certificate(for key: P256.Signing.PrivateKey) throws -> Certificate {
        let name = try DistinguishedName { CommonName("patchbay") }
        // Begins a day ago, for peers with a clock that is behind.
        let start = Date(timeIntervalSinceNow: -86_400)
        return try Certificate(
            version: .v3,
            serialNumber: Certificate.SerialNumber(),
            publicKey: Certificate.PublicKey(key.publicKey),
            notValidBefore: start,
            notValidAfter: start.addingTimeInterval(Double(Self.years) * 365.25 * 86_400),
            issuer: name,
            subject: name,
            signatureAlgorithm: .ecdsaWithSHA256,
            extensions: Certificate.Extensions { Critical(BasicConstraints.notCertificateAuthority) },
            issuerPrivateKey: Certificate.PrivateKey(key)
        )
    }
}

/// The texts are not a P-256 key and the certificate of the same key.
package struct IdentityMismatch: Error, CustomStringConvertible {
    package init() {}

    package var description: String { "it does not have a P-256 key and the certificate of that key" }
}
