import Crypto
package import Model
import SwiftASN1
package import X509

/// A private P-256 key for which an authority issues a certificate. It is created where it is used, and never leaves it.
package struct CertificateKey: Sendable {
    /// The key (PKCS #8), as PEM. A secret.
    package let pem: String
    /// The pin of the public key.
    package let pin: KeyPin

    private let key: P256.Signing.PrivateKey

    /// Creates a new key.
    ///
    /// - Throws: `TLSError.unusable`.
    package init() throws(TLSError) {
        guard let key = CertificateKey(P256.Signing.PrivateKey()) else {
            throw .unusable(reason: "a new key has an unknown encoding")
        }
        self = key
    }

    /// Parses a key.
    ///
    /// - Throws: `TLSError.notAccepted`.
    package init(pem: String) throws(TLSError) {
        guard let key = try? P256.Signing.PrivateKey(pemRepresentation: pem), let parsed = CertificateKey(key) else {
            throw .notAccepted(reason: "its key is not a P-256 key as PEM")
        }
        self = parsed
    }

    private init?(_ key: P256.Signing.PrivateKey) {
        guard let pin = PinnedKey.pin(ofP256: Array(key.publicKey.derRepresentation)) else { return nil }
        self.key = key
        self.pin = pin
        pem = key.pemRepresentation + "\n"
    }

    /// Creates a certificate signing request (PKCS #10), as PEM. It proves that the sender has the key.
    ///
    /// - Throws: `TLSError.unusable`.
    package func signingRequest() throws(TLSError) -> String {
        do {
            // The authority chooses the name.
            let request = try CertificateSigningRequest(
                version: .v1,
                subject: DistinguishedName(),
                privateKey: Certificate.PrivateKey(key),
                attributes: CertificateSigningRequest.Attributes(),
                signatureAlgorithm: .ecdsaWithSHA256
            )
            return try request.serializeAsPEM().pemString + "\n"
        } catch {
            throw .unusable(reason: "a certificate signing request could not be created (\(error))")
        }
    }

    /// Returns whether a certificate is for this key.
    package func matches(_ certificate: Certificate) -> Bool {
        Certificate.PublicKey(key.publicKey) == certificate.publicKey
    }
}
