import FoundationEssentials
import Model
import Samples
import TestSupport
import Testing
import Transport

@testable import Team

/// The files of the team at the start of a broker, and their changes since.
@Suite(.scratchFolder) struct TeamStartTests {
    private let scratch = ScratchFolder.current

    @Test func `a broker with the files of its team takes part, and has no problem`() async throws {
        let fixture = TeamFixture(in: scratch)
        _ = try await fixture.createTeam()
        let team = try fixture.team("lab1")
        let components = try #require(try await RunningTeam(team, logger: .quiet))

        #expect(try await TeamSetup(team, CurrentTeam(components)).problem() == nil)
    }

    @Test func `a renewed certificate with the same key is used without a restart`() async throws {
        let fixture = TeamFixture(in: scratch)
        _ = try await fixture.createTeam()
        _ = try await fixture.join("lab2")
        let lab2 = try await fixture.start("lab2")
        let before = try await lab2.status()
        #expect(!before.restartNeeded)

        let pairing = try await fixture.start("lab1").invite(TeamInviteSpec()).pairing
        let after = try await lab2.join(TeamJoinSpec(pairing: pairing))

        #expect(!after.restartNeeded && after.problem == nil && after.key == before.key)
    }

    @Test func `files of the team that were changed by hand need a restart`() async throws {
        let fixture = TeamFixture(in: scratch)
        let lab1 = try await fixture.createTeam()
        let team = try fixture.team("lab1")
        var membership = try #require(try await team.membership())
        membership.etcd = ["https://10.0.0.6:2379"]
        try await membership.save(in: team.folder.path, logger: .quiet)

        #expect(try await lab1.status().restartNeeded)
        #expect(await lab1.source()?.hint == "sudo systemctl restart patchbayd")
        #expect(try await !fixture.start("lab1").status().restartNeeded)
    }

    @Test func `a broker that cannot read team.etcd_ca starts without its team, and says why`() async throws {
        let fixture = TeamFixture(in: scratch)
        _ = try await fixture.createTeam()
        let path = "\(try fixture.folder("lab1").path)/absent.pem"
        var configuration = TeamConfiguration()
        configuration.etcdAuthority = path
        let team = try fixture.team("lab1", configuration)

        let components = try await RunningTeam(team, logger: .quiet)
        let source = await TeamSetup(team, CurrentTeam(components)).source()

        #expect(components == nil)
        #expect(source?.detail.hasPrefix("\(path), which team.etcd_ca names, cannot be read: ") == true)
        #expect(source?.hint == "correct team.etcd_ca in the configuration, then sudo systemctl restart patchbayd")
    }

    @Test func `a broker without the certificate of its team starts without it, and says why`() async throws {
        let fixture = TeamFixture(in: scratch)
        _ = try await fixture.createTeam()
        let team = try fixture.team("lab1")
        try FileManager.default.removeItem(atPath: team.folder.identity.path)

        let components = try await RunningTeam(team, logger: .quiet)
        let source = await TeamSetup(team, CurrentTeam(components)).source()

        #expect(components == nil)
        #expect(source?.detail == "this host has no certificate of its team")
        #expect(source?.hint == "patchbay team init lab")
    }

    @Test func `a damaged key file is the problem of the team, while the broker runs and at its start`() async throws {
        let fixture = TeamFixture(in: scratch)
        let lab1 = try await fixture.createTeam()
        let team = try fixture.team("lab1")
        try Data("x".utf8).write(to: URL(filePath: team.folder.identity.path))

        let components = try await RunningTeam(team, logger: .quiet)
        #expect(components == nil)
        for setup in [lab1, TeamSetup(team, CurrentTeam())] {
            #expect(await setup.source()?.detail.contains("host.pem is damaged") == true)
        }
    }
}
