import FoundationEssentials
import Model
import Samples
import Synchronization
import TestSupport
import Testing
import Transport

@testable import Team

@Suite(.scratchFolder) struct CertificateRenewerTests {
    private let scratch = ScratchFolder.current
    private static let day: TimeInterval = 86_400

    /// The renewal of lab2, at a time after its certificate began.
    private func renewer(
        _ fixture: TeamFixture,
        daysAfter days: Double,
        applied: @escaping @Sendable (MemberIdentity) -> Void = { _ in },
        renewal: (@Sendable (String) async throws -> TeamRenewal)? = nil
    ) async throws -> CertificateRenewer {
        let authority = try #require(try fixture.folder("lab1").authority.load())
        let file = try fixture.folder("lab2").identity
        let now = Date(timeIntervalSinceNow: days * Self.day)
        return CertificateRenewer(
            file: file,
            inUse: IdentityInUse(try #require(try file.load()), apply: applied),
            renewal: renewal ?? {
                TeamRenewal(
                    certificate: try authority.issue(.host("lab2"), request: $0, now: now).pem,
                    authority: authority.certificatePEM
                )
            },
            now: { now },
            logger: .quiet
        )
    }

    private func team() async throws -> TeamFixture {
        let fixture = TeamFixture(in: scratch)
        _ = try await fixture.createTeam()
        _ = try await fixture.join("lab2")
        return fixture
    }

    @Test func `the certificate of a host is valid for a year, and stays for two thirds of it`() async throws {
        let fixture = try await team()
        let before = try #require(try fixture.folder("lab2").identity.load())
        #expect(before.expiresAt < Date(timeIntervalSinceNow: 366 * Self.day))

        try await renewer(fixture, daysAfter: 240).check()

        #expect(try fixture.folder("lab2").identity.load()?.certificatePEM == before.certificatePEM)
    }

    @Test func `a certificate is renewed after two thirds, with the same key, and used without a restart`() async throws
    {
        let fixture = try await team()
        let before = try #require(try fixture.folder("lab2").identity.load())
        let applied = Mutex<MemberIdentity?>(nil)
        let renewer = try await renewer(fixture, daysAfter: 244, applied: { new in applied.withLock { $0 = new } })

        try await renewer.check()

        let after = try #require(try fixture.folder("lab2").identity.load())
        #expect(after.pin == before.pin && after.expiresAt > before.expiresAt.addingTimeInterval(240 * Self.day))
        #expect(applied.withLock { $0?.certificatePEM } == after.certificatePEM)
        #expect(renewer.inUse.identity.certificatePEM == after.certificatePEM)
    }

    @Test func `the authority renews its own certificate after ten years, and hosts get it with theirs`() async throws {
        let fixture = try await team()
        let lab1 = try fixture.team("lab1")
        let before = try #require(try lab1.folder.authority.load())
        let request = try fixture.folder("lab1").identity.loadOrCreateKey().signingRequest()
        let early = try await lab1.ownRenewal(request, at: Date(timeIntervalSinceNow: 3_600 * Self.day))
        #expect(early.authority == before.certificatePEM)

        let days = 3_660.0
        let own = try await lab1.ownRenewal(request, at: Date(timeIntervalSinceNow: days * Self.day))

        let after = try #require(try lab1.folder.authority.load())
        #expect(own.authority == after.certificatePEM && after.keyPEM == before.keyPEM)
        #expect(after.certificatePEM != before.certificatePEM)
        #expect(after.expiresAt > before.expiresAt.addingTimeInterval(9.9 * 365.25 * Self.day))
        let used = try await renewer(fixture, daysAfter: days)
        try await used.check()
        #expect(used.inUse.identity.authorityPEM == after.certificatePEM)
        #expect(try fixture.folder("lab2").identity.load()?.authorityPEM == after.certificatePEM)
        // Such a host still belongs to its team.
        #expect(CertificateAuthority.isSame(before.certificatePEM, after.certificatePEM))
        let other = try CertificateAuthority(creatingFor: SanitizedText("lab"))
        #expect(!CertificateAuthority.isSame(before.certificatePEM, other.certificatePEM))
    }

    @Test func `a certificate of another host or team is not used`() async throws {
        let fixture = try await team()
        let authority = try #require(try fixture.folder("lab1").authority.load())
        let other = try CertificateAuthority(creatingFor: SanitizedText("lab"))
        let before = try #require(try fixture.folder("lab2").identity.load())
        let now = Date(timeIntervalSinceNow: 300 * Self.day)

        for (authority, host) in [(authority, "lab3" as HostName), (other, "lab2")] {
            let renewer = try await renewer(
                fixture,
                daysAfter: 300,
                renewal: {
                    TeamRenewal(
                        certificate: try authority.issue(.host(host), request: $0, now: now).pem,
                        authority: authority.certificatePEM
                    )
                }
            )
            await #expect(throws: TLSError.self) { try await renewer.check() }
        }
        #expect(try fixture.folder("lab2").identity.load()?.certificatePEM == before.certificatePEM)
    }

    @Test func `a certificate that a command has renewed is used without a restart`() async throws {
        let fixture = try await team()
        let renewer = try await renewer(fixture, daysAfter: 1)
        let file = try fixture.folder("lab2").identity
        let before = try #require(try file.load())
        let authority = try #require(try fixture.folder("lab1").authority.load())
        let key = try file.loadOrCreateKey()
        let pem = try authority.issue(.host("lab2"), request: key.signingRequest()).pem
        try file.save(MemberIdentity(key: key, certificate: pem, authority: before.authorityPEM))

        try await renewer.check()

        #expect(renewer.inUse.identity.certificatePEM == pem && pem != before.certificatePEM)
    }

    @Test func `the authority renews the key of a member, and no other one`() async throws {
        let fixture = try await team()
        let lab1 = try await fixture.start("lab1")
        _ = try await fixture.members("lab1")
        let key = try fixture.folder("lab2").identity.loadOrCreateKey()

        let renewed = try await lab1.renew(TeamRenewalSpec(request: key.signingRequest()), of: "lab2")

        #expect(renewed.certificate.hasPrefix("-----BEGIN CERTIFICATE"))
        let other = try CertificateKey().signingRequest()
        await #expect(throws: Problem.self) { try await lab1.renew(TeamRenewalSpec(request: other), of: "lab2") }
        await #expect(throws: Problem.self) {
            try await lab1.renew(TeamRenewalSpec(request: key.signingRequest()), of: "lab3")
        }
    }
}
