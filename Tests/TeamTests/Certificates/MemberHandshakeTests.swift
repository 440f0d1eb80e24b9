import Crypto
import FoundationEssentials
import Model
import NIOCore
import NIOSSL
import SwiftASN1
import TestSupport
import Testing
import Transport
import X509

@testable import Team

@Suite struct MemberHandshakeTests {
    private let team: CertificateFixture
    private let lab1: MemberIdentity
    private let lab2: MemberIdentity
    private let server: MemberServerTLS

    init() throws {
        team = try CertificateFixture()
        lab1 = try team.member("lab1")
        lab2 = try team.member("lab2")
        server = try MemberServerTLS(identity: lab1)
    }

    /// Connects to lab1 with `client`, and returns the name and the pin that lab1 sees.
    private func seen(_ client: @escaping Handshake.Setup) async throws -> String {
        let server = server
        return try await Handshake.answer(server: server.secure, client: client) { channel in
            server.host(of: channel).map { "\($0.host) \($0.key)" } ?? "none"
        }
    }

    private func seen(_ client: MemberIdentity, host: String, key: KeyPin) async throws -> String {
        let (tls, host) = (try MemberClientTLS(identity: client), try #require(HostName(host)))
        return try await seen { try tls.secure($0, to: host, key: key) }
    }

    /// Connects to lab1 with any certificate.
    private func seen(_ certificate: Certificate, key: Certificate.PrivateKey) async throws -> String {
        try await seen(
            Self.raw { configuration in
                configuration.certificateChain = [.certificate(try NIOSSLCertificate(certificate))]
                configuration.privateKey = .privateKey(try NIOSSLPrivateKey(key))
            }
        )
    }

    /// Connects as lab2 to a server with any certificate, which should be lab1.
    private func answer(of certificate: Certificate, key: P256.Signing.PrivateKey) async throws -> String {
        let context = try NIOSSLContext(
            configuration: .makeServerConfiguration(
                certificateChain: [.certificate(NIOSSLCertificate(certificate))],
                privateKey: .privateKey(NIOSSLPrivateKey(Certificate.PrivateKey(key)))
            )
        )
        let (client, host) = (try MemberClientTLS(identity: lab2), lab1.host)
        let pin = try #require(PinnedKey.pin(ofP256: Array(key.publicKey.derRepresentation)))
        return try await Handshake.answer { channel in
            try channel.pipeline.syncOperations.addHandler(NIOSSLServerHandler(context: context), position: .first)
        } client: { channel in
            try client.secure(channel, to: host, key: pin)
        }
    }

    @Test func `two members know the name and the key of each other`() async throws {
        #expect(try await seen(lab2, host: "lab1", key: lab1.pin) == "lab2 \(lab2.pin)")
    }

    @Test func `a second connection of the same client shows the same host`() async throws {
        let (client, lab1) = (try MemberClientTLS(identity: lab2), lab1)
        for _ in 0..<3 {
            #expect(try await seen { try client.secure($0, to: lab1.host, key: lab1.pin) } == "lab2 \(lab2.pin)")
        }
    }

    @Test func `a host that joins has no certificate, and verifies the pinned key`() async throws {
        let (joining, pin) = (try ClientTLS(identity: nil), lab1.pin)
        #expect(try await seen { try joining.secure($0, pin: pin) } == "none")

        let other = lab2.pin
        await #expect(throws: NIOSSLError.self) { try await seen { try joining.secure($0, pin: other) } }
    }

    @Test func `a client stops at another host, and at another key of the same host`() async throws {
        for (host, key) in [("lab3", lab1.pin), ("lab1", lab2.pin)] {
            let error = await #expect(throws: TLSError.self) { try await seen(lab2, host: host, key: key) }
            #expect(error?.description.hasPrefix("the certificate is not accepted: ") == true)
        }
    }

    @Test func `a member of another team with the same names is refused by both sides`() async throws {
        let other = try CertificateFixture()
        let stranger = try other.member("lab2")
        await #expect(throws: (any Error).self) { try await seen(stranger, host: "lab1", key: lab1.pin) }

        let key = P256.Signing.PrivateKey()
        let certificate = try other.certificate(for: Certificate.PublicKey(key.publicKey), name: "lab1")
        await #expect(throws: NIOSSLError.self) { try await answer(of: certificate, key: key) }
    }

    @Test func `after a renewal both sides use the new certificate, where the old one has expired`() async throws {
        let (key1, key2) = (try CertificateKey(), try CertificateKey())
        let age: TimeInterval = 370 * 86_400
        let server = try MemberServerTLS(identity: try team.member("lab1", key: key1, issued: age))
        let client = try MemberClientTLS(identity: try team.member("lab2", key: key2, issued: age))
        let host = lab1.host
        func connect() async throws -> String {
            try await Handshake.answer(server: server.secure) { channel in
                try client.secure(channel, to: host, key: key1.pin)
            } answer: { channel in
                server.host(of: channel).map(\.host.text) ?? "none"
            }
        }
        await #expect(throws: (any Error).self) { try await connect() }
        try server.use(try team.member("lab1", key: key1))
        await #expect(throws: (any Error).self) { try await connect() }

        try client.use(try team.member("lab2", key: key2))

        #expect(try await connect() == "lab2")
    }

    @Test func `hosts with the old and the renewed certificate of the authority accept each other`() async throws {
        let old = try CertificateAuthority(
            creatingFor: SanitizedText("lab"),
            now: Date(timeIntervalSinceNow: -11 * 365.25 * 86_400)
        )
        let new = try #require(try old.renewed(at: Date()))
        #expect(try new.renewed(at: Date()) == nil)
        for (one, other) in [(old, new), (new, old)] {
            let server = try CertificateFixture(one).member("lab1")
            let client = try MemberClientTLS(identity: try CertificateFixture(other).member("lab2"))
            let tls = try MemberServerTLS(identity: server)
            let name = try await Handshake.answer(server: tls.secure) { channel in
                try client.secure(channel, to: server.host, key: server.pin)
            } answer: { channel in
                tls.host(of: channel).map(\.host.text) ?? "none"
            }
            #expect(name == "lab2")
        }
    }

    @Test(arguments: [(-23.0, true), (-25.0, false)])
    func `a new certificate counts at a host whose clock is up to a day behind`(hours: Double, counts: Bool)
        async throws
    {
        let ahead = try team.member("lab2", issued: hours * 3_600)
        let seen = try? await seen(ahead, host: "lab1", key: lab1.pin)

        #expect((seen != nil) == counts)
    }

    /// Returns a certificate that is valid now, signed by any key.
    private static func certificate(
        for key: P256.Signing.PrivateKey,
        of subject: DistinguishedName,
        signedWith issuerKey: Certificate.PrivateKey,
        of issuer: DistinguishedName,
        extensions: Certificate.Extensions = Certificate.Extensions()
    ) throws -> Certificate {
        try Certificate(
            version: .v3,
            serialNumber: Certificate.SerialNumber(),
            publicKey: Certificate.PublicKey(key.publicKey),
            notValidBefore: Date(timeIntervalSinceNow: -60),
            notValidAfter: Date(timeIntervalSinceNow: 3_600),
            issuer: issuer,
            subject: subject,
            extensions: extensions,
            issuerPrivateKey: issuerKey
        )
    }

    @Test func `a self-signed certificate is refused by both sides`() async throws {
        let key = P256.Signing.PrivateKey()
        let name = try DistinguishedName { CommonName("lab1") }
        let certificate = try Self.certificate(for: key, of: name, signedWith: Certificate.PrivateKey(key), of: name)
        await #expect(throws: (any Error).self) { try await seen(certificate, key: Certificate.PrivateKey(key)) }
        await #expect(throws: NIOSSLError.self) { try await answer(of: certificate, key: key) }
    }

    /// A certificate of the team's authority with one property that hosts do not have.
    enum Variant: CaseIterable {
        case correct, expired, future, otherUse, authority, twoWords, etcdRoot, empty
    }

    private func certificate(_ variant: Variant, name: String, isClient: Bool, key: P256.Signing.PrivateKey) throws
        -> Certificate
    {
        let publicKey = Certificate.PublicKey(key.publicKey)
        return switch variant {
        case .correct: try team.certificate(for: publicKey, name: name)
        case .expired: try team.certificate(for: publicKey, name: name, validFrom: -7_200, to: -3_600)
        case .future: try team.certificate(for: publicKey, name: name, validFrom: 3_600, to: 7_200)
        case .otherUse:
            try team.certificate(for: publicKey, name: name, uses: isClient ? [.serverAuth] : [.clientAuth])
        case .authority:
            try team.certificate(for: publicKey, name: name, constraints: .isCertificateAuthority(maxPathLength: nil))
        case .twoWords: try team.certificate(for: publicKey, name: "\(name) \(name)")
        case .etcdRoot: try team.certificate(for: publicKey, name: "root")
        case .empty: try team.certificate(for: publicKey, name: "")
        }
    }

    @Test(arguments: Variant.allCases)
    func `a server accepts only the certificate of a host that is valid now and for clients`(variant: Variant)
        async throws
    {
        let key = P256.Signing.PrivateKey()
        let certificate = try certificate(variant, name: "lab2", isClient: true, key: key)
        let seen = try? await seen(certificate, key: Certificate.PrivateKey(key))

        #expect((seen != nil) == (variant == .correct), "\(variant): \(seen ?? "refused")")
    }

    @Test(arguments: Variant.allCases)
    func `a client accepts only the certificate of a host that is valid now and for servers`(variant: Variant)
        async throws
    {
        let key = P256.Signing.PrivateKey()
        let certificate = try certificate(variant, name: "lab1", isClient: false, key: key)
        let answer = try? await answer(of: certificate, key: key)

        #expect((answer != nil) == (variant == .correct), "\(variant)")
    }

    @Test func `the authority's own certificate is no certificate of a host`() throws {
        let authority = team.authority
        let key = try CertificateKey(pem: authority.keyPEM)

        #expect(throws: TLSError.self) {
            try MemberIdentity(key: key, certificate: authority.certificatePEM, authority: authority.certificatePEM)
        }
    }

    @Test func `a certificate that a host signed itself is refused`() async throws {
        let key = P256.Signing.PrivateKey()
        let certificate = try Self.certificate(
            for: key,
            of: DistinguishedName { CommonName("lab3") },
            signedWith: Certificate.PrivateKey(pemEncoded: lab2.keyPEM),
            of: Certificate(pemEncoded: lab2.certificatePEM).subject,
            extensions: Certificate.Extensions { try ExtendedKeyUsage([.serverAuth, .clientAuth]) }
        )
        let chain = [
            try NIOSSLCertificate(certificate), try NIOSSLCertificate(Certificate(pemEncoded: lab2.certificatePEM)),
        ]
        let client = Self.raw { configuration in
            configuration.certificateChain = chain.map { .certificate($0) }
            configuration.privateKey = .privateKey(try NIOSSLPrivateKey(Certificate.PrivateKey(key)))
        }
        await #expect(throws: (any Error).self) { try await seen(client) }
    }

    @Test(arguments: ["P-384", "P-521", "Ed25519"])
    func `a certificate of the team with another type of key is refused`(type: String) async throws {
        let key =
            switch type {
            case "P-384": Certificate.PrivateKey(P384.Signing.PrivateKey())
            case "P-521": Certificate.PrivateKey(P521.Signing.PrivateKey())
            default: Certificate.PrivateKey(Curve25519.Signing.PrivateKey())
            }
        let certificate = try team.certificate(for: key.publicKey)

        await #expect(throws: (any Error).self) { try await seen(certificate, key: key) }
    }

    @Test func `a member that only knows TLS 1_2 is refused`() async throws {
        let lab2 = lab2
        let client = Self.raw { configuration in
            configuration.maximumTLSVersion = .tlsv12
            configuration.certificateChain = try NIOSSLCertificate.fromPEMBytes(Array(lab2.certificatePEM.utf8))
                .map { .certificate($0) }
            configuration.privateKey = .privateKey(try NIOSSLPrivateKey(bytes: Array(lab2.keyPEM.utf8), format: .pem))
        }
        await #expect(throws: (any Error).self) { try await seen(client) }
    }

    /// A client without any rule of this project.
    private static func raw(_ change: @escaping @Sendable (inout TLSConfiguration) throws -> Void) -> Handshake.Setup {
        { channel in
            var configuration = TLSConfiguration.makeClientConfiguration()
            configuration.certificateVerification = .none
            try change(&configuration)
            let context = try NIOSSLContext(configuration: configuration)
            let handler = try NIOSSLClientHandler(context: context, serverHostname: nil)
            try channel.pipeline.syncOperations.addHandler(handler, position: .first)
        }
    }
}
