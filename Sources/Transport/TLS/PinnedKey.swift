import Crypto
package import Model
package import NIOSSL
import SwiftASN1
import X509

/// The rules for the key of a peer. Only these functions decide whether a key is accepted.
///
/// The rules have no other input than the key. The name, the dates and the issuer of a certificate prove nothing,
/// because every certificate is self-signed.
package enum PinnedKey {
    /// Hashes a P-256 key, given as the DER of its SubjectPublicKeyInfo.
    ///
    /// - Returns: The pin; nil for any other key, and for any other encoding of a P-256 key.
    package static func pin(ofP256 spki: [UInt8]) -> KeyPin? {
        // The comparison rejects further encodings of the same point, such as the compressed one (RFC 5480).
        guard let key = try? P256.Signing.PublicKey(derRepresentation: spki), Array(key.derRepresentation) == spki
        else { return nil }
        return KeyPin(digest: SHA256.hash(data: spki))
    }

    /// Returns whether a key, given as the DER of its SubjectPublicKeyInfo, is the pinned P-256 key.
    package static func matches(spki: [UInt8], pin: KeyPin) -> Bool { Self.pin(ofP256: spki) == pin }

    /// Returns the DER of the SubjectPublicKeyInfo of the first certificate, which is the peer's own; nil unless it is a
    /// P-256 key.
    package static func spki(of chain: [NIOSSLCertificate]) -> [UInt8]? {
        // `extractPublicKey` ends the process if BoringSSL cannot decode the key.
        guard let first = chain.first, let certificate = try? Certificate(derEncoded: first.toDERBytes()),
            P256.Signing.PublicKey(certificate.publicKey) != nil
        else { return nil }
        return try? first.extractPublicKey().toSPKIBytes()
    }
}
