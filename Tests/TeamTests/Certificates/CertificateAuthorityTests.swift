import Crypto
import FoundationEssentials
import Glibc
import Model
import Samples
import SwiftASN1
import Team
import TestSupport
import Testing
import Transport
import X509

@Suite(.scratchFolder) struct CertificateAuthorityTests {
    private let folder = ScratchFolder.current
    private let team: CertificateFixture

    init() throws { team = try CertificateFixture() }

    private func issue(_ purpose: CertificatePurpose) throws -> Certificate {
        let pem = try team.authority.issue(purpose, request: CertificateKey().signingRequest()).pem
        return try Certificate(pemEncoded: pem)
    }

    private let lab2: HostName = "lab2"

    @Test func `the certificate of the authority signs hosts and no further authorities, for 20 years`() throws {
        let certificate = try Certificate(pemEncoded: team.authority.certificatePEM)

        #expect(certificate.subject.description == "CN=Patchbay team lab")
        #expect(try certificate.extensions.basicConstraints == .isCertificateAuthority(maxPathLength: 0))
        #expect(try certificate.extensions.keyUsage == KeyUsage(keyCertSign: true, cRLSign: true))
        #expect(certificate.notValidAfter > Date(timeIntervalSinceNow: 19.9 * 365.25 * 86_400))
    }

    @Test func `the certificate of a host has its name, and is for servers and clients`() throws {
        let certificate = try issue(.host(lab2))

        #expect(certificate.subject.description == "CN=lab2")
        #expect(try certificate.extensions.extendedKeyUsage == ExtendedKeyUsage([.serverAuth, .clientAuth]))
        #expect(try certificate.extensions.basicConstraints == .notCertificateAuthority)
    }

    @Test func `the certificate of an etcd node has no common name, which etcd would take for a user`() throws {
        let certificate = try issue(.etcdServer(addresses: ["10.0.0.7", "fd00::7", "a.example.com"]))

        #expect(certificate.subject.description == "O=etcd")
        #expect(try certificate.extensions.extendedKeyUsage == ExtendedKeyUsage([.serverAuth, .clientAuth]))
        let names = try #require(try certificate.extensions.subjectAlternativeNames)
        #expect(names.contains(.dnsName("localhost")))
        #expect(names.contains(.ipAddress(ASN1OctetString(contentBytes: [10, 0, 0, 7]))))
        let address: ArraySlice<UInt8> = [0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7]
        #expect(names.contains(.ipAddress(ASN1OctetString(contentBytes: address))))
        #expect(names.contains(.dnsName("a.example.com")))
    }

    @Test func `the certificate for the other etcd nodes has a name that no host can have`() throws {
        let certificate = try issue(.etcdPeer(addresses: ["10.0.0.7"]))

        #expect(certificate.subject.description == "CN=etcd.peer")
        #expect(HostName(TeamCertificateSpec.peerName) == nil)
        let names = try #require(try certificate.extensions.subjectAlternativeNames)
        #expect(names.contains(.ipAddress(ASN1OctetString(contentBytes: [10, 0, 0, 7]))))
    }

    @Test func `the certificate of the etcd user root is for clients only`() throws {
        let certificate = try issue(.etcdRoot)

        #expect(certificate.subject.description == "CN=root")
        #expect(try certificate.extensions.extendedKeyUsage == ExtendedKeyUsage([.clientAuth]))
    }

    @Test func `each certificate has its own serial number`() throws {
        let numbers = try (0..<8).map { _ in try issue(.host(lab2)).serialNumber }

        #expect(Set(numbers).count == 8)
    }

    @Test func `no host can get the certificate of the etcd user root`() throws {
        let root: HostName = "root"

        #expect(throws: TLSError.self) { try issue(.host(root)) }
    }

    @Test(arguments: ["", "10.0.0.256", "a b", "-a", "a..b", "10.0.0.0/8", "a\nb", "*.example.com"])
    func `an address that is no name and no number is refused`(address: String) throws {
        #expect(throws: TLSError.self) { try issue(.etcdServer(addresses: [address])) }
    }

    @Test func `the names and extensions that a request asks for have no effect`() throws {
        let key = Certificate.PrivateKey(P256.Signing.PrivateKey())
        let wish = try Certificate.Extensions {
            Critical(BasicConstraints.isCertificateAuthority(maxPathLength: 3))
            SubjectAlternativeNames([.dnsName("etcd1"), .ipAddress(ASN1OctetString(contentBytes: [127, 0, 0, 1]))])
        }
        let request = try CertificateSigningRequest(
            version: .v1,
            subject: DistinguishedName { CommonName("root") },
            privateKey: key,
            attributes: CertificateSigningRequest.Attributes([.init(ExtensionRequest(extensions: wish))]),
            signatureAlgorithm: .ecdsaWithSHA256
        )
        let pem = try team.authority.issue(.host(lab2), request: request.serializeAsPEM().pemString).pem
        let certificate = try Certificate(pemEncoded: pem)

        #expect(certificate.subject.description == "CN=lab2")
        #expect(try certificate.extensions.basicConstraints == .notCertificateAuthority)
        #expect(try certificate.extensions.subjectAlternativeNames == nil)
    }

    @Test func `a request that another key signed is refused`() throws {
        let (owner, thief) = (P256.Signing.PrivateKey(), P256.Signing.PrivateKey())
        let signed = try CertificateSigningRequest(
            pemEncoded: CertificateKey(pem: thief.pemRepresentation).signingRequest()
        )
        let forged = try CertificateSigningRequest(
            version: .v1,
            subject: DistinguishedName(),
            publicKey: Certificate.PublicKey(owner.publicKey),
            attributes: CertificateSigningRequest.Attributes(),
            signatureAlgorithm: .ecdsaWithSHA256,
            signature: signed.signature
        )

        #expect(throws: TLSError.self) {
            try team.authority.issue(.host(lab2), request: forged.serializeAsPEM().pemString)
        }
    }

    @Test func `a request with an RSA key, and a text that is no request, are refused`() throws {
        for request in [rsaRequest, "", team.authority.certificatePEM] {
            let error = #expect(throws: TLSError.self) { try team.authority.issue(.host(lab2), request: request) }
            #expect(error?.description.hasPrefix("the certificate is not issued: ") == true)
        }
    }

    @Test func `the saved authority signs after a restart, and its files are private`() async throws {
        let files = CertificateAuthorityFiles(in: folder.file("."))
        #expect(try files.load() == nil)
        try files.save(team.authority)

        let loaded = try #require(try files.load())
        #expect(loaded.certificatePEM == team.authority.certificatePEM)
        #expect(loaded.keyPEM == team.authority.keyPEM)
        chmod(files.keyPath, 0o640)
        #expect(throws: TLSError.self) { try files.load() }
    }

    @Test func `an authority whose key is that of another team is refused`() async throws {
        let other = try CertificateFixture()
        let files = CertificateAuthorityFiles(in: folder.file("."))
        try files.save(team.authority)
        try Data(other.authority.keyPEM.utf8).write(to: URL(filePath: files.keyPath))
        chmod(files.keyPath, 0o600)

        #expect(throws: TLSError.self) { try files.load() }
    }
}

/// A request of `openssl req -new -newkey rsa:2048`.
private let rsaRequest = """
    -----BEGIN CERTIFICATE REQUEST-----
    MIICRTCCAS0CAQAwADCCASIwDQYJKoZIhvcNAQEBBQADggEPADCCAQoCggEBAMUq
    9nmAsRawTNcP4ronxm3IBdc4qM3VXQGHGkypIM7oafUhUrYL4WSw/oDsQQvmmObi
    eYw3IH3xc4w+oYYTlQ542sZxCQ+V9pvf9r27Q0/Eg9Oyg7hKSunDJGBk53XOFlBR
    gAYwemLlyY8O+lWHNHnVayRyfbAL++fwNsqQTGydq6cmz1N2a/ju0/Y3Cklw9rnz
    1PRA5ruV+BAzz4mrqAtuvUx9VQXWLr+vhQ5nEc6lSWEit9WI3bntMp+mkl0WHNwF
    Pn1AU7eomlkYll3g6ih06mtaMUbo5+q1cNsMSHYM8ykswc8UBuwJnZUwudEjmmbx
    6lKUBGsfemqMmHVnYYUCAwEAAaAAMA0GCSqGSIb3DQEBCwUAA4IBAQB9kMazUseS
    jMRYcaEQGrLEhP69ETfCt5zmfMOw0Pwbz0mYpFKn7H+Zzj7lzCQNMAbaCNQhtoxz
    OdeE+VE8iLPFQkRxWAfhE6Ip1vEcqTN8NiuJI6rbHgHZ929EBPmoE8qQvwW+rSD7
    ngOriXpJmmDDAQDcui7evfjy1BmkXlpslIsfXiWCZ6mh6TSNgQhnxKvZYaE6Ujn/
    cb2vku+rQyBiB9qEVJxlpuUxxNQoZuxP6th3ZYC+R3gb3mND35GJyCepfBrJCIX4
    83YNR61hkErxP9Juaz0aA5sssq1yDqY5jgvLiQ0/wr4TS5sbVo0i3VN179VHr7Qv
    /trXDZyicDep
    -----END CERTIFICATE REQUEST-----
    """
