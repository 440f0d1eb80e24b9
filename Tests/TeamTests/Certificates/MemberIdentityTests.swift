import FoundationEssentials
import Glibc
import Model
import Team
import TestSupport
import Testing
import Transport

@Suite(.scratchFolder) struct MemberIdentityTests {
    private let folder = ScratchFolder.current
    private let team: CertificateFixture

    init() throws { team = try CertificateFixture() }

    private func request(_ key: CertificateKey, _ name: String) throws -> String {
        try team.authority.issue(.host(#require(HostName(name))), request: key.signingRequest()).pem
    }

    @Test func `the key is created once, and stays after a failed join`() async throws {
        let file = MemberIdentityFile(in: folder.file("."))
        let key = try file.loadOrCreateKey()

        #expect(try file.loadOrCreateKey().pin == key.pin)
        #expect(try file.load() == nil)
        let attributes = try FileManager.default.attributesOfItem(atPath: file.path)
        #expect(attributes[.posixPermissions] as? Int == 0o600)
    }

    @Test func `a new key replaces the identity, and is kept until the next join`() async throws {
        let file = MemberIdentityFile(in: folder.file("."))
        let old = try file.loadOrCreateKey()
        let certificate = try request(old, "lab2")
        try file.save(MemberIdentity(key: old, certificate: certificate, authority: team.authority.certificatePEM))
        let key = try file.createKey()

        #expect(key.pin != old.pin)
        #expect(try file.loadOrCreateKey().pin == key.pin)
        #expect(try file.load() == nil)
    }

    @Test func `a saved identity has the same host and key after a restart`() async throws {
        let file = MemberIdentityFile(in: folder.file("."))
        let key = try file.loadOrCreateKey()
        let identity = try MemberIdentity(
            key: key,
            certificate: request(key, "lab2"),
            authority: team.authority.certificatePEM
        )
        try file.save(identity)

        let loaded = try #require(try file.load())
        #expect(loaded.host == identity.host && loaded.pin == key.pin && loaded.expiresAt == identity.expiresAt)
        #expect(loaded.authorityPEM == team.authority.certificatePEM)
        #expect(try file.loadOrCreateKey().pin == key.pin)
    }

    @Test func `a certificate for another key, or from another authority, is refused`() throws {
        let (key, other) = (try CertificateKey(), try CertificateFixture())
        let certificate = try request(key, "lab2")

        #expect(throws: TLSError.self) {
            try MemberIdentity(
                key: CertificateKey(),
                certificate: certificate,
                authority: team.authority.certificatePEM
            )
        }
        #expect(throws: TLSError.self) {
            try MemberIdentity(key: key, certificate: certificate, authority: other.authority.certificatePEM)
        }
    }

    @Test func `a file that others can open is refused`() async throws {
        let file = MemberIdentityFile(in: folder.file("."))
        _ = try file.loadOrCreateKey()
        chmod(file.path, 0o644)

        #expect(throws: TLSError.self) { try file.load() }
        #expect(throws: TLSError.self) { try file.loadOrCreateKey() }
    }

    @Test func `a damaged file is reported and stays`() async throws {
        let file = MemberIdentityFile(in: folder.file("."))
        try Data("not a key".utf8).write(to: URL(filePath: file.path))
        chmod(file.path, 0o600)

        #expect(throws: TLSError.self) { try file.loadOrCreateKey() }
        #expect(try String(contentsOf: URL(filePath: file.path), encoding: .utf8) == "not a key")
    }
}
