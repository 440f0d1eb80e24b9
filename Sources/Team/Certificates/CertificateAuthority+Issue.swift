import Crypto
package import FoundationEssentials
import Glibc
package import Model
import SwiftASN1
package import Transport
import X509

/// The purpose of a certificate that the authority of a team issues.
package enum CertificatePurpose: Hashable, Sendable {
    /// A host: server and client of other brokers, and client of etcd. The common name is the host's name.
    ///
    /// It has no alternative name, so no client takes a host for a server of etcd.
    case host(HostName)
    /// A node of etcd, for its clients. It has no common name, which etcd would take for a user.
    ///
    /// The addresses are host names and numeric addresses of the node.
    case etcdServer(addresses: [String])
    /// A node of etcd, for the other nodes. The common name is `TeamCertificateSpec.peerName`, which tells it from a host.
    case etcdPeer(addresses: [String])
    /// The user `root` of etcd, who manages its users and roles.
    case etcdRoot
}

/// A certificate that the authority of a team has issued.
package struct IssuedCertificate: Sendable {
    /// The certificate, as PEM.
    package let pem: String
    /// The pin of its key.
    package let key: KeyPin
}

extension CertificateAuthority {
    /// The user of etcd that manages all others. No host may have this name, because it would be that user.
    package static let etcdRootUser = "root"

    /// Returns the lifetime of a certificate in years.
    ///
    /// A host renews its certificate itself. The certificates for etcd need a person. A removed host is refused at once,
    /// because its entry in the list of members is gone.
    private static func years(of purpose: CertificatePurpose) -> Int {
        if case .host = purpose { 1 } else { 10 }
    }

    /// The maximum number of names and addresses in a certificate.
    private static let nameLimit = 32

    /// Issues a certificate for the key of a request.
    ///
    /// Only the key of the request is used. Its name and its extensions have no effect.
    ///
    /// - Parameters:
    ///   - purpose: Decides the names and the allowed uses.
    ///   - request: The certificate signing request (PKCS #10), as PEM.
    ///   - now: The time of the issue.
    /// - Returns: The certificate, and the pin of its key.
    /// - Throws: `TLSError.notIssued`.
    package func issue(
        _ purpose: CertificatePurpose,
        request: String,
        now: Date = Date()
    ) throws(TLSError) -> IssuedCertificate {
        let (publicKey, pin) = try Self.key(of: request)
        if case .host(let host) = purpose, host.text == Self.etcdRootUser {
            throw .notIssued(reason: "\(host) is the administrator of etcd; choose another name for the host")
        }
        let names = try Self.names(of: purpose)
        do {
            let start = CertificateDates.start(now)
            let certificate = try Certificate(
                version: .v3,
                serialNumber: Certificate.SerialNumber(),
                publicKey: Certificate.PublicKey(publicKey),
                notValidBefore: start,
                notValidAfter: min(CertificateDates.end(years: Self.years(of: purpose), after: start), expiresAt),
                issuer: certificate.subject,
                subject: try Self.subject(of: purpose),
                signatureAlgorithm: .ecdsaWithSHA256,
                extensions: Certificate.Extensions {
                    Critical(BasicConstraints.notCertificateAuthority)
                    Critical(KeyUsage(digitalSignature: true))
                    try Self.uses(of: purpose)
                    if !names.isEmpty { SubjectAlternativeNames(names) }
                    AuthorityKeyIdentifier(keyIdentifier: SubjectKeyIdentifier(hash: key.publicKey).keyIdentifier)
                },
                issuerPrivateKey: key
            )
            return IssuedCertificate(pem: try certificate.serializeAsPEM().pemString + "\n", key: pin)
        } catch {
            throw .notIssued(reason: "\(error)")
        }
    }

    /// Returns the key of a request that proves to have the private key.
    private static func key(of request: String) throws(TLSError) -> (P256.Signing.PublicKey, KeyPin) {
        let parsed: CertificateSigningRequest
        do { parsed = try CertificateSigningRequest(pemEncoded: request) } catch {
            throw .notIssued(reason: "the request is not a certificate signing request (\(error))")
        }
        guard let key = P256.Signing.PublicKey(parsed.publicKey),
            let pin = PinnedKey.pin(ofP256: Array(key.derRepresentation))
        else {
            throw .notIssued(reason: "the key of the request is not a P-256 key")
        }
        guard parsed.publicKey.isValidSignature(parsed.signature, for: parsed) else {
            throw .notIssued(reason: "the request is not signed with its own key")
        }
        return (key, pin)
    }

    private static func subject(of purpose: CertificatePurpose) throws -> DistinguishedName {
        switch purpose {
        case .host(let host): try DistinguishedName { CommonName(host.text) }
        case .etcdServer: try DistinguishedName { OrganizationName("etcd") }
        case .etcdPeer: try DistinguishedName { CommonName(TeamCertificateSpec.peerName) }
        case .etcdRoot: try DistinguishedName { CommonName(etcdRootUser) }
        }
    }

    /// The nodes of etcd are clients of each other.
    private static func uses(of purpose: CertificatePurpose) throws -> ExtendedKeyUsage {
        purpose == .etcdRoot ? try ExtendedKeyUsage([.clientAuth]) : try ExtendedKeyUsage([.serverAuth, .clientAuth])
    }

    /// Returns the names of a node of etcd, which is also reached from its own machine.
    private static func names(of purpose: CertificatePurpose) throws(TLSError) -> [GeneralName] {
        let addresses: [String]
        switch purpose {
        case .etcdServer(let own), .etcdPeer(let own): addresses = own
        case .host, .etcdRoot: return []
        }
        guard addresses.count <= nameLimit else {
            throw .notIssued(reason: "there are \(addresses.count) addresses, and at most \(nameLimit) are possible")
        }
        var names: [GeneralName] = []
        for text in ["localhost", "127.0.0.1", "::1"] + addresses {
            guard let name = GeneralName(address: text) else {
                throw .notIssued(reason: "\"\(SanitizedText(text))\" is not a host name or a numeric address")
            }
            if !names.contains(name) { names.append(name) }
        }
        return names
    }
}
