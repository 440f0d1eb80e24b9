import Crypto
import FoundationEssentials
import Model
import NIOSSL
import SwiftASN1
import Team
import Transport
import X509

/// A team with its authority, and certificates that its authority would not issue.
struct CertificateFixture {
    let authority: CertificateAuthority

    init(_ authority: CertificateAuthority? = nil) throws {
        self.authority = try authority ?? CertificateAuthority(creatingFor: SanitizedText("lab"))
    }

    /// Returns the identity of a host, as it has it after its join.
    ///
    /// - Parameters:
    ///   - name: The name of the host.
    ///   - key: Its key; nil for a new one.
    ///   - seconds: The time since the certificate was issued, by the clock of the authority.
    /// - Returns: The identity.
    /// - Throws: An error of the libraries.
    func member(_ name: String, key: CertificateKey? = nil, issued seconds: TimeInterval = 0) throws -> MemberIdentity {
        let key = try key ?? CertificateKey()
        let host = try HostName(name) ?? Self.impossible()
        let certificate = try authority.issue(
            .host(host),
            request: key.signingRequest(),
            now: Date(timeIntervalSinceNow: -seconds)
        ).pem
        return try MemberIdentity(key: key, certificate: certificate, authority: authority.certificatePEM)
    }

    /// Signs a certificate with the key of the authority, outside all rules.
    func certificate(
        for key: Certificate.PublicKey,
        name: String = "lab2",
        validFrom start: TimeInterval = -3_600,
        to end: TimeInterval = 3_600,
        uses: [ExtendedKeyUsage.Usage] = [.serverAuth, .clientAuth],
        constraints: BasicConstraints = .notCertificateAuthority
    ) throws -> Certificate {
        try Certificate(
            version: .v3,
            serialNumber: Certificate.SerialNumber(),
            publicKey: key,
            notValidBefore: Date(timeIntervalSinceNow: start),
            notValidAfter: Date(timeIntervalSinceNow: end),
            issuer: Certificate(pemEncoded: authority.certificatePEM).subject,
            subject: DistinguishedName { CommonName(name) },
            signatureAlgorithm: .ecdsaWithSHA256,
            extensions: Certificate.Extensions {
                Critical(constraints)
                try ExtendedKeyUsage(uses)
            },
            issuerPrivateKey: Certificate.PrivateKey(pemEncoded: authority.keyPEM)
        )
    }

    /// An error for a value that the fixture itself chose wrongly.
    static func impossible<Value>() throws -> Value { throw CocoaError(.featureUnsupported) }
}

extension NIOSSLCertificate {
    convenience init(_ certificate: Certificate) throws {
        try self.init(bytes: certificate.serializeAsPEM().derBytes, format: .der)
    }
}

extension NIOSSLPrivateKey {
    convenience init(_ key: Certificate.PrivateKey) throws {
        try self.init(bytes: key.serializeAsPEM().derBytes, format: .der)
    }
}
