import Crypto
package import FoundationEssentials
import Model
import NIOSSL
import SwiftASN1
import X509

/// The certificate that a broker shows: for its own key, with the names and addresses of its machine.
///
/// A pin holds whatever the names are. A client without pins, such as Node, trusts the authority of the broker. It has the
/// same key, and its own certificate does not change with the addresses. It can issue certificates only for the names
/// that it was saved with (RFC 5280, section 4.2.1.10). So a thief of the key cannot pose as another site.
package struct ServerCertificate: Sendable {
    /// The names and addresses, without those that no certificate can have.
    package let names: [String]
    package let expiresAt: Date
    /// The certificate of the authority, as PEM.
    package let authority: String
    let certificate: NIOSSLCertificate

    /// Apple's systems accept at most 825 days.
    private static let days = 397
    private static let authorityYears = 20
    private static let day = 86_400.0

    /// Issues the certificate.
    ///
    /// - Throws: `TLSError.notIssued`.
    package init(for identity: TLSIdentity, names: [String], now: Date = Date()) throws(TLSError) {
        let names = Self.valid(names)
        self.names = names
        expiresAt = now + Double(Self.days) * Self.day
        do {
            let uses = try ExtendedKeyUsage([.serverAuth])
            let issued = try Self.issue(
                by: identity,
                CommonName("patchbay"),
                now,
                expiresAt,
                Certificate.Extensions {
                    Critical(BasicConstraints.notCertificateAuthority)
                    Critical(KeyUsage(digitalSignature: true))
                    uses
                    SubjectAlternativeNames(names.compactMap(GeneralName.init(address:)))
                    AuthorityKeyIdentifier(
                        keyIdentifier: SubjectKeyIdentifier(hash: .init(identity.key.publicKey)).keyIdentifier
                    )
                }
            )
            var serializer = DER.Serializer()
            try serializer.serialize(issued)
            certificate = try NIOSSLCertificate(bytes: serializer.serializedBytes, format: .der)
            authority = try Self.authority(of: identity, names: names, now)
        } catch { throw .notIssued(reason: "\(error)") }
    }

    /// True in the second half of its life.
    func isOld(_ now: Date) -> Bool { expiresAt.timeIntervalSince(now) < Double(Self.days) / 2 * Self.day }

    /// Returns the different names and addresses that a certificate can have, in order.
    static func valid(_ names: [String]) -> [String] {
        names.reduce(into: []) { valid, name in
            if MachineHostNames.isValid(name), !valid.contains(name) { valid.append(name) }
        }
    }

    /// Returns the certificate of an authority for host names, and for every address.
    private static func authority(of identity: TLSIdentity, names: [String], _ now: Date) throws -> String {
        let allowed = names.filter { if case .dnsName = GeneralName(address: $0) { true } else { false } }
        let certificate = try issue(
            by: identity,
            authorityName(identity.pin),
            now,
            now + Double(authorityYears) * 365.25 * day,
            Certificate.Extensions {
                Critical(BasicConstraints.isCertificateAuthority(maxPathLength: 0))
                Critical(KeyUsage(keyCertSign: true))
                Critical(NameConstraints(permittedDNSDomains: allowed))
                SubjectKeyIdentifier(hash: .init(identity.key.publicKey))
            }
        )
        return try certificate.serializeAsPEM().pemString + "\n"
    }

    /// Clients find the authority of a certificate by its name, so no two brokers may share one.
    private static func authorityName(_ pin: KeyPin) -> CommonName { CommonName("patchbay \(pin)") }

    private static func issue(
        by identity: TLSIdentity,
        _ subject: CommonName,
        _ now: Date,
        _ end: Date,
        _ extensions: Certificate.Extensions
    ) throws -> Certificate {
        let issuer = try DistinguishedName { authorityName(identity.pin) }
        return try Certificate(
            version: .v3,
            serialNumber: Certificate.SerialNumber(),
            publicKey: Certificate.PublicKey(identity.key.publicKey),
            // Begins a day ago, for peers with a clock that is behind.
            notValidBefore: now - day,
            notValidAfter: end,
            issuer: issuer,
            subject: try DistinguishedName { subject },
            signatureAlgorithm: .ecdsaWithSHA256,
            extensions: extensions,
            issuerPrivateKey: Certificate.PrivateKey(identity.key)
        )
    }
}
