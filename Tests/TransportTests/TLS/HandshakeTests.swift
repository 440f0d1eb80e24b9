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

@Suite struct HandshakeTests {
    private let broker: TLSIdentity
    private let server: ServerTLS

    init() throws {
        broker = try TLSIdentity()
        server = try ServerTLS(identity: broker)
    }

    /// Connects with `client`, and returns the pin that the server sees.
    private func seenPin(_ client: @escaping Handshake.Setup) async throws -> String {
        let server = server
        return try await Handshake.answer(server: server.secure, client: client) { channel in
            server.clientKey(of: channel)?.description ?? "none"
        }
    }

    private func seenPin(_ client: ClientTLS, pin: KeyPin) async throws -> String {
        try await seenPin { try client.secure($0, pin: pin) }
    }

    @Test func `with the right pin, each side knows the key of the other`() async throws {
        let identity = try TLSIdentity()

        #expect(try await seenPin(ClientTLS(identity: identity), pin: broker.pin) == identity.pin.description)
    }

    @Test func `a second connection of the same client shows the same key`() async throws {
        let identity = try TLSIdentity()
        let client = try ClientTLS(identity: identity)
        for _ in 0..<3 { #expect(try await seenPin(client, pin: broker.pin) == identity.pin.description) }
    }

    @Test func `a client without a certificate is accepted and has no key`() async throws {
        #expect(try await seenPin(ClientTLS(identity: nil), pin: broker.pin) == "none")
    }

    @Test func `a client stops at a broker with another key and the same name`() async throws {
        let other = try TLSIdentity()

        await #expect(throws: NIOSSLError.self) { try await seenPin(ClientTLS(identity: nil), pin: other.pin) }
    }

    @Test(arguments: ["P-384", "P-521", "Ed25519"])
    func `a client key of another type is refused`(type: String) async throws {
        let key =
            switch type {
            case "P-384": Certificate.PrivateKey(P384.Signing.PrivateKey())
            case "P-521": Certificate.PrivateKey(P521.Signing.PrivateKey())
            default: Certificate.PrivateKey(Curve25519.Signing.PrivateKey())
            }
        let context = try Self.clientContext { try $0.use(Self.certificate(for: key), key: key) }

        await #expect(throws: (any Error).self) { try await seenPin(Self.raw(context)) }
    }

    @Test func `the same client with a P-256 key is accepted`() async throws {
        let key = Certificate.PrivateKey(P256.Signing.PrivateKey())
        let context = try Self.clientContext { try $0.use(Self.certificate(for: key), key: key) }

        #expect(try await seenPin(Self.raw(context)) != "none")
    }

    @Test func `a client with a copied certificate and another private key is refused`() async throws {
        let (owner, thief) = (P256.Signing.PrivateKey(), P256.Signing.PrivateKey())
        let certificate = try Self.certificate(for: Certificate.PrivateKey(owner))
        for (key, isAccepted) in [(owner, true), (thief, false)] {
            let context = try Self.clientContext { configuration in
                configuration.certificateChain = [.certificate(certificate)]
                configuration.privateKey = .privateKey(NIOSSLPrivateKey(customPrivateKey: SigningKey(key: key)))
            }
            let pin = try? await seenPin(Self.raw(context))
            #expect((pin != nil) == isAccepted)
        }
    }

    @Test func `a broker with a copied certificate and another private key is refused`() async throws {
        let (owner, thief) = (P256.Signing.PrivateKey(), P256.Signing.PrivateKey())
        let certificate = try Self.certificate(for: Certificate.PrivateKey(owner))
        let pin = try #require(PinnedKey.pin(ofP256: Array(owner.publicKey.derRepresentation)))
        let client = try ClientTLS(identity: nil)
        for (key, isAccepted) in [(owner, true), (thief, false)] {
            let context = try NIOSSLContext(
                configuration: .makeServerConfiguration(
                    certificateChain: [.certificate(certificate)],
                    privateKey: .privateKey(NIOSSLPrivateKey(customPrivateKey: SigningKey(key: key)))
                )
            )
            let answer = try? await Handshake.answer { channel in
                try channel.pipeline.syncOperations.addHandler(NIOSSLServerHandler(context: context), position: .first)
            } client: { channel in
                try client.secure(channel, pin: pin)
            }
            #expect((answer != nil) == isAccepted)
        }
    }

    @Test func `a client that only knows TLS 1_2 is refused`() async throws {
        let context = try Self.clientContext { $0.maximumTLSVersion = .tlsv12 }

        await #expect(throws: (any Error).self) { try await seenPin(Self.raw(context)) }
    }

    @Test func `a client names the reason of a failed handshake`() async throws {
        let other = try TLSIdentity()
        let pinned = await #expect(throws: (any Error).self) {
            try await seenPin(ClientTLS(identity: nil), pin: other.pin)
        }
        #expect(pinned.flatMap(ClientFailure.init) == .otherKey)

        let key = Certificate.PrivateKey(P384.Signing.PrivateKey())
        let context = try Self.clientContext { try $0.use(Self.certificate(for: key), key: key) }
        let refused = await #expect(throws: (any Error).self) { try await seenPin(Self.raw(context)) }
        #expect(refused.flatMap(ClientFailure.init) == .keyRefused)

        #expect(ClientFailure(NIOSSLError.uncleanShutdown) == .closed)
        #expect(ClientFailure(Handshake.ClosedWithoutAnswer()) == nil)
    }

    /// A client without any rule of this project.
    private static func clientContext(_ change: (inout TLSConfiguration) throws -> Void) throws -> NIOSSLContext {
        var configuration = TLSConfiguration.makeClientConfiguration()
        configuration.certificateVerification = .none
        try change(&configuration)
        return try NIOSSLContext(configuration: configuration)
    }

    private static func raw(_ context: NIOSSLContext) -> Handshake.Setup {
        { channel in
            let handler = try NIOSSLClientHandler(context: context, serverHostname: nil)
            try channel.pipeline.syncOperations.addHandler(handler, position: .first)
        }
    }

    private static func certificate(for key: Certificate.PrivateKey) throws -> NIOSSLCertificate {
        let name = try DistinguishedName { CommonName("patchbay") }
        let certificate = try Certificate(
            version: .v3,
            serialNumber: Certificate.SerialNumber(),
            publicKey: key.publicKey,
            notValidBefore: Date(timeIntervalSinceNow: -60),
            notValidAfter: Date(timeIntervalSinceNow: 3_600),
            issuer: name,
            subject: name,
            extensions: Certificate.Extensions {},
            issuerPrivateKey: key
        )
        return try NIOSSLCertificate(bytes: certificate.serializeAsPEM().derBytes, format: .der)
    }
}

extension TLSConfiguration {
    fileprivate mutating func use(_ certificate: NIOSSLCertificate, key: Certificate.PrivateKey) throws {
        certificateChain = [.certificate(certificate)]
        privateKey = .privateKey(try NIOSSLPrivateKey(bytes: key.serializeAsPEM().derBytes, format: .der))
    }
}

/// Signs with any key, whatever the certificate says. NIOSSL itself refuses a key that does not match.
private struct SigningKey: NIOSSLCustomPrivateKey, Hashable {
    let key: P256.Signing.PrivateKey

    var signatureAlgorithms: [SignatureAlgorithm] { [.ecdsaSecp256R1Sha256] }
    var derBytes: [UInt8] { [] }

    func sign(channel: any Channel, algorithm: SignatureAlgorithm, data: ByteBuffer) -> EventLoopFuture<ByteBuffer> {
        channel.eventLoop.makeCompletedFuture {
            ByteBuffer(bytes: try key.signature(for: Array(buffer: data)).derRepresentation)
        }
    }

    func decrypt(channel: any Channel, data: ByteBuffer) -> EventLoopFuture<ByteBuffer> {
        channel.eventLoop.makeFailedFuture(Handshake.ClosedWithoutAnswer())
    }

    static func == (left: Self, right: Self) -> Bool { left.key.rawRepresentation == right.key.rawRepresentation }

    func hash(into hasher: inout Hasher) { hasher.combine(key.rawRepresentation) }
}
