import Crypto
import FoundationEssentials
import Glibc
import Model
import NIOCore
import NIOSSL
import SwiftASN1
import Synchronization
import TestSupport
import Testing
import X509

@testable import Transport

@Suite(.scratchFolder) struct ServerCertificateTests {
    private let scratch = ScratchFolder.current

    /// Writes a pair for names, and returns its files.
    private func pair(_ names: [String], days: Double = 90) throws -> CertificateFiles {
        let identity = try TLSIdentity()
        let start = Date(timeIntervalSinceNow: (days - 397) * 86_400)
        let certificate = try ServerCertificate(for: identity, names: names, now: start)
        let files = try #require(CertificateFiles(scratch.file("fullchain.pem"), scratch.file("privkey.pem")))
        let pem = try Certificate(derEncoded: certificate.certificate.toDERBytes()).serializeAsPEM().pemString
        try Data(pem.utf8).write(to: URL(filePath: files.certificate))
        try Data((identity.pem.split(separator: "-----BEGIN CERTIFICATE").first ?? "").utf8)
            .write(to: URL(filePath: files.key))
        chmod(files.key, 0o600)
        return files
    }

    @Test func `names that no certificate can have are left out`() throws {
        let names = ["lab", "lab.local", "10.0.0.7", "fe80::1", "a b", "-x", ""]
        let certificate = try ServerCertificate(for: TLSIdentity(), names: names)

        #expect(certificate.names == ["lab", "lab.local", "10.0.0.7", "fe80::1"])
    }

    @Test func `a certificate is issued again for a new name, on the same key`() throws {
        let identity = try TLSIdentity()
        let one = try ServerCertificate(for: identity, names: ["lab"])
        let other = try ServerCertificate(for: identity, names: ["lab", "10.0.0.8"])

        #expect(one.certificate != other.certificate)
        for certificate in [one, other] {
            #expect(
                PinnedKey.spki(of: [certificate.certificate]).map { PinnedKey.matches(spki: $0, pin: identity.pin) }
                    == true
            )
        }
    }

    @Test func `a host name is known in full from the hosts file, and as mDNS announces it`() {
        let hosts = "127.0.0.1 localhost\n127.0.1.1\tlab.example.com lab # lab.old\n"

        #expect(MachineHostNames.names(of: "lab", hosts: hosts) == ["lab", "lab.example.com", "lab.local"])
        #expect(MachineHostNames.names(of: "lab.a.org", hosts: "") == ["lab.a.org", "lab", "lab.local"])
    }

    @Test func `the owner's pair is for its names, and a star is one label`() throws {
        let certificate = try pair(["lab.example.com"]).load()

        #expect(certificate.isFor("LAB.example.com") && !certificate.isFor("example.com"))
        #expect(certificate.expiresAt > Date())
    }

    @Test func `a pair that does not belong together, has ended, or that every user can read is refused with a reason`()
        throws
    {
        let files = try pair(["lab"])
        chmod(files.key, 0o644)
        #expect(reason(files)?.contains("every user can read the key") == true)
        chmod(files.key, 0o600)
        let key = try Data(contentsOf: URL(filePath: files.key))
        _ = try pair(["lab"])
        try key.write(to: URL(filePath: files.key))
        chmod(files.key, 0o600)
        #expect(reason(files)?.contains("not the certificate of the key") == true)
        #expect(reason(try pair(["lab"], days: -1))?.contains("has expired") == true)
        try Data("none".utf8).write(to: URL(filePath: files.key))
        chmod(files.key, 0o600)
        #expect(reason(files)?.contains("not a private key") == true)
        unlink(files.certificate)
        #expect(reason(files)?.contains("could not be read") == true)
    }

    private func reason(_ files: CertificateFiles) -> String? {
        do { _ = try files.load() } catch { return "\(error)" }
        return nil
    }

    @Test func `a broken pair leaves the one before it in use, and says why`() async throws {
        let files = try pair(["lab.example.com"])
        let server = try ServerTLS(identity: TLSIdentity(), files: files)
        #expect(server.certificates.configured?.names == ["lab.example.com"] && server.certificates.problem == nil)

        try Data("none".utf8).write(to: URL(filePath: files.certificate))
        try await Task.sleep(for: .milliseconds(1_100))

        #expect(server.certificates.configured?.names == ["lab.example.com"])
        #expect(server.certificates.problem?.contains("not a certificate") == true)
    }

    @Test func `a pair that ends is still served, and its end is reported once`() throws {
        let reports = Mutex<[String]>([])
        let server = try ServerTLS(
            identity: TLSIdentity(),
            files: try pair(["lab.example.com"]),
            report: { reason in reports.withLock { $0.append(reason) } }
        )
        #expect(server.refreshed().file != nil && reports.withLock { $0.isEmpty })

        for day in 1...3 {
            #expect(server.refreshed(now: Date() + TimeInterval((3_650 + day) * 86_400)).file != nil)
        }

        #expect(reports.withLock { $0 } == ["the certificate has expired, and clients refuse it"])
    }

    @Test(arguments: [("lab.example.com", true), ("other.example.com", false), (nil, false)] as [(String?, Bool)])
    func `a client that asks for a name of the owner's pair gets it, and all others the pinned key`(
        name: String?,
        isOwners: Bool
    ) async throws {
        let files = try pair(["lab.example.com"])
        let identity = try TLSIdentity()
        let server = try ServerTLS(identity: identity, files: files)
        let pinned = Array(identity.key.publicKey.derRepresentation)
        var configuration = TLSConfiguration.makeClientConfiguration()
        configuration.certificateVerification = .noHostnameVerification
        let context = try NIOSSLContext(configuration: configuration)

        let answer = try await Handshake.answer(
            server: server.secure,
            client: { channel in
                let handler = try NIOSSLClientHandler(context: context, serverHostname: name) { chain, promise in
                    let isPinned = PinnedKey.spki(of: chain) == pinned
                    promise.succeed(isPinned == isOwners ? .failed : .certificateVerified)
                }
                try channel.pipeline.syncOperations.addHandler(handler, position: .first)
            }
        )

        #expect(answer == "accepted")
    }
}
