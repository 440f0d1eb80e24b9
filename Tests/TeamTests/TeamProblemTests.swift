import FoundationEssentials
import Model
import Samples
import Synchronization
import TestSupport
import Testing
import Transport

@testable import Team

/// The problems that `patchbay team`, `patchbay status` and `patchbay doctor` show, and their next steps.
@Suite(.scratchFolder) struct TeamProblemTests {
    private let scratch = ScratchFolder.current

    /// Returns the problem of a host that has read the registry and failed afterwards.
    private func problem(
        of name: String,
        after failure: TeamError?,
        in fixture: TeamFixture,
        at now: Date = Date()
    ) async throws -> Problem? {
        let identity = try #require(try fixture.folder(name).identity.load())
        let members = try await fixture.members(name)
        let membership = TeamMembership(
            team: TeamFixture.spec.team,
            host: identity.host,
            etcd: [],
            authority: HostName("lab1")
        )
        var snapshot = TeamSnapshot(staleSince: nil)
        for member in members.all { snapshot.apply(.member(member)) }
        snapshot.failure = failure
        let running = TeamSetup.Running(
            membership: membership,
            key: identity.pin,
            certificate: { identity.certificatePEM },
            expiresAt: { identity.expiresAt },
            startsAt: { identity.startsAt }
        ) { [snapshot] in
            snapshot
        } own: {
            TeamHost(name: identity.host, version: "1", addresses: [], since: Date(), generation: 1)
        }
        return running.problem(members: members, at: now)
    }

    @Test func `a host whose certificate has ended is told so, and how it gets a new one`() async throws {
        let fixture = TeamFixture(in: scratch)
        _ = try await fixture.createTeam()
        _ = try await fixture.join("lab2")
        let (later, refused) = (Date(timeIntervalSinceNow: 366 * 86_400), TeamError.store(.unreachable(reason: "bad")))
        for (name, step) in [("lab1", "patchbay team init lab"), ("lab2", "patchbay team join -")] {
            let problem = try await problem(of: name, after: refused, in: fixture, at: later)
            #expect(problem?.detail.hasPrefix("the certificate of this host ended at ") == true)
            #expect(problem?.hint?.contains(step) == true, "\(String(describing: problem))")
        }
    }

    @Test func `a host whose clock is before its certificate learns by how much it is behind`() async throws {
        let fixture = TeamFixture(in: scratch)
        _ = try await fixture.createTeam()
        _ = try await fixture.join("lab2")
        let start = try #require(try fixture.folder("lab2").identity.load()).startsAt

        let problem = try #require(try await problem(of: "lab2", after: nil, in: fixture, at: start - 3_600))

        #expect(problem.detail.contains("the clock here is 90000 s behind"), "\(problem)")
        #expect(problem.hint == "timedatectl, here and on lab1")
        #expect(try await self.problem(of: "lab2", after: nil, in: fixture, at: start) == nil)
    }

    @Test func `a removed host is told so, also after a restart, and its next step is to leave`() async throws {
        let fixture = TeamFixture(in: scratch)
        let lab1 = try await fixture.createTeam()
        _ = try await fixture.join("lab2")
        #expect(try await problem(of: "lab2", after: nil, in: fixture) == nil)

        try await lab1.remove("lab2")
        let denied = TeamError.store(.denied(reason: "permission denied"))
        for failure in [nil, denied] {
            let problem = try await problem(of: "lab2", after: failure, in: fixture)
            #expect(problem?.detail == "lab2 was removed from the team" && problem?.hint == "patchbay team leave")
        }
        let status = try await fixture.start("lab2").status()
        #expect(status.problem == "lab2 was removed from the team" && status.hint == "patchbay team leave")
        let source = await (try fixture.start("lab2")).source()
        #expect(source?.detail == status.problem && source?.hint == status.hint && source?.state == .missing)
    }

    @Test func `a registry without entries has the command that repairs it, on the authority`() async throws {
        let fixture = TeamFixture(in: scratch)
        _ = try await fixture.createTeam()
        _ = try await fixture.join("lab2")
        let failure = TeamError.wrongTeam(expected: TeamFixture.spec.team, found: nil)
        for (name, hint) in [("lab1", "patchbay team init lab"), ("lab2", "on lab1: patchbay team init lab")] {
            let restarted = try await problem(of: name, after: failure, in: fixture)
            #expect(restarted?.detail == "the registry has no team" && restarted?.hint == hint)
        }
        _ = try await fixture.registry.memory.write([.deleteAll(prefix: TeamKey.root)], if: nil)
        let running = try await problem(of: "lab1", after: nil, in: fixture)
        #expect(running?.detail == "the registry has no team" && running?.hint == "patchbay team init lab")
    }

    @Test func `the reason of an unreachable registry is named`() async throws {
        let fixture = TeamFixture(in: scratch)
        _ = try await fixture.createTeam()
        let failure = TeamError.store(.unreachable(reason: "no route"))
        let problem = try await problem(of: "lab1", after: failure, in: fixture)
        #expect(problem?.detail == "the registry of the team is unreachable: no route")
    }

    @Test func `a host leaves and joins again without a restart`() async throws {
        let fixture = TeamFixture(in: scratch)
        let lab1 = try await fixture.createTeam()
        _ = try await fixture.join("lab2")
        let lab2 = try await fixture.start("lab2")
        #expect(try await !lab2.status().restartNeeded)

        try await lab2.leave()
        #expect(try await lab2.status() == TeamStatus())
        try await lab1.remove("lab2")
        let pairing = try await fixture.start("lab1").invite(TeamInviteSpec()).pairing
        let joined = try await lab2.join(TeamJoinSpec(pairing: pairing))
        #expect(!joined.restartNeeded && joined.host?.text == "lab2")
    }

    @Test func `another name of the team is answered with the right command, and never with leave`() async throws {
        let fixture = TeamFixture(in: scratch)
        let lab1 = try await fixture.createTeam()
        let lab2 = try await fixture.join("lab2")
        let other = TeamSpec(team: SanitizedText("lab2"), etcd: TeamFixture.spec.etcd)

        let problem = await #expect(throws: Problem.self) { try await lab1.create(other) }
        #expect(problem?.detail == "this host has the team lab" && problem?.hint == "patchbay team init lab")
        let refused = await #expect(throws: Problem.self) { try await lab2.create(other) }
        #expect(refused?.detail == "only the host lab1 has the certificate authority of the team lab")
        #expect(TeamMembership.initCommand(SanitizedText("My Team")) == "patchbay team init 'My Team'")
    }

    @Test func `a team that works keeps its etcd servers until the new ones answer`() async throws {
        let fixture = TeamFixture(in: scratch)
        let lab1 = try await fixture.createTeam()
        let spec = TeamSpec(team: TeamFixture.spec.team, etcd: ["https://10.0.0.9:2379"])
        fixture.registry.memory.isReachable = false
        let problem = await #expect(throws: Problem.self) { try await lab1.create(spec) }

        #expect(problem?.detail.contains("the team lab keeps its etcd servers") == true)
        #expect(try await lab1.status().etcd.map(\.url) == TeamFixture.spec.etcd)
        fixture.registry.memory.isReachable = true
        #expect(try await lab1.create(spec).etcd.map(\.url) == spec.etcd)
    }

    @Test func `a cluster that answers the administrator and refuses the host is no success`() async throws {
        let fixture = TeamFixture(in: scratch)
        fixture.registry.refusesHosts.withLock { $0 = true }
        let setup = try await fixture.start("lab1")
        let status = try await setup.create(TeamFixture.spec)
        #expect(status.problem == "no answer" && status.hint?.hasPrefix("append ca.pem") == true)

        fixture.registry.refusesHosts.withLock { $0 = false }
        let second = try await setup.create(TeamFixture.spec)
        #expect(second.problem == nil && second.hint == nil)
    }
}
