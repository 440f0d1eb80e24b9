import AccessControl
import FoundationEssentials
import Model
import Samples
import Synchronization
import TestSupport
import Testing
import Transport

@testable import Team

/// Losses of the registry and removals, and the way back that docs/team.md describes.
@Suite(.scratchFolder) struct TeamRecoveryTests {
    private let scratch = ScratchFolder.current

    private static func key(of name: String, in fixture: TeamFixture) throws -> KeyPin {
        try #require(try fixture.folder(name).identity.load()).pin
    }

    @Test func `after the loss of the registry the authority restores it, and each host joins again with a new key`()
        async throws
    {
        let fixture = TeamFixture(in: scratch)
        _ = try await fixture.createTeam()
        for name in ["lab2", "lab3"] { _ = try await fixture.join(name) }
        for name in ["lab1", "lab2", "lab3"] { _ = try await fixture.members(name) }
        let keys = try ["lab1", "lab2"].map { try Self.key(of: $0, in: fixture) }
        _ = try await fixture.registry.memory.write([.deleteAll(prefix: TeamKey.root)], if: nil)

        #expect(try await fixture.start("lab1").create(TeamFixture.spec).problem == nil)
        for name in ["lab2", "lab3"] { _ = try await fixture.join(name) }

        #expect(try await fixture.registry.members() == ["lab1", "lab2", "lab3"])
        #expect(try Self.key(of: "lab1", in: fixture) == keys[0])
        #expect(try Self.key(of: "lab2", in: fixture) != keys[1])
        for (one, other) in [("lab1", "lab2"), ("lab1", "lab3"), ("lab2", "lab3")] {
            #expect(try await fixture.agree(one, other), "\(one) and \(other)")
        }
    }

    @Test(arguments: [false, true])
    func `after the loss of its entry the authority gets a new key, and says that its broker needs a restart`(
        returns: Bool
    ) async throws {
        let fixture = TeamFixture(in: scratch)
        _ = try await fixture.createTeam()
        _ = try await fixture.join("lab2")
        for name in ["lab1", "lab2"] { _ = try await fixture.members(name) }
        let old = try Self.key(of: "lab1", in: fixture)
        let store = fixture.registry.memory
        let key = TeamKey.member("lab1").text
        let entry = try #require(try await store.list(key).entries.first)
        _ = try await store.write([.delete(key: key)], if: nil)
        for name in ["lab1", "lab2"] { _ = try await fixture.members(name) }
        // The entry may return, for example from a backup of etcd.
        if returns { _ = try await store.write([.put(key: key, value: entry.value, sessionLease: nil)], if: nil) }

        let lab1 = try await fixture.start("lab1")
        let status = try await lab1.create(TeamFixture.spec)
        #expect(status.problem == nil && !status.restartNeeded)
        #expect(status.key != nil && status.key != old)
        _ = try await lab1.invite(TeamInviteSpec())
        #expect(try await fixture.agree("lab1", "lab2"))
        #expect(try await fixture.registry.members() == ["lab1", "lab2"])
    }

    @Test func `a removed host joins again with a new key only`() async throws {
        let fixture = TeamFixture(in: scratch)
        let lab1 = try await fixture.createTeam()
        _ = try await fixture.join("lab2")
        _ = try await fixture.members("lab1")
        let identity = try #require(try fixture.folder("lab2").identity.load())
        try await lab1.remove(identity.host)

        let invite = try TeamPairingString(try await lab1.invite(TeamInviteSpec()).pairing).invite
        let request = try fixture.folder("lab2").identity.loadOrCreateKey().signingRequest()
        let problem = await #expect(throws: Problem.self) {
            try await lab1.admit(TeamMemberSpec(invite: invite, host: identity.host, request: request))
        }
        #expect(problem?.code == .forbidden)
        #expect(problem?.detail == "the key of the host lab2 was removed from the team")
        #expect(try await fixture.registry.members() == ["lab1"])

        _ = try await fixture.join("lab2")
        #expect(try Self.key(of: "lab2", in: fixture) != identity.pin)
        #expect(try await fixture.agree("lab1", "lab2"))
    }

    @Test func `a host that joins again while it is a member keeps its key`() async throws {
        let fixture = TeamFixture(in: scratch)
        _ = try await fixture.createTeam()
        _ = try await fixture.join("lab2")
        let key = try Self.key(of: "lab2", in: fixture)

        _ = try await fixture.join("lab2")
        #expect(try Self.key(of: "lab2", in: fixture) == key)
    }

    @Test func `entries and claims that a host writes during its removal are deleted`() async throws {
        let fixture = TeamFixture(in: scratch)
        let lab1 = try await fixture.createTeam()
        _ = try await fixture.join("lab2")
        let lab2: HostName = "lab2"
        let endpoint = TeamKey.endpoint("ghost", on: lab2).text
        let claim = TeamKey.claim(.endpoint("shop.lab1")).text
        let keys = [endpoint, claim, TeamKey.host(lab2).text]
        fixture.registry.lateWrites.withLock { writes in
            writes = keys.map { .put(key: $0, value: [1], sessionLease: nil) }
        }

        try await lab1.remove(lab2)

        let left = try await fixture.registry.memory.list(TeamKey.root).entries.map(\.key)
        #expect(Set(left).isDisjoint(with: keys))
    }

    @Test func `a host that joins during the removal of another one stays a member`() async throws {
        let fixture = TeamFixture(in: scratch)
        let lab1 = try await fixture.createTeam()
        _ = try await fixture.join("lab2")
        _ = try await fixture.members("lab1")
        fixture.registry.duringRemoval.withLock { hook in
            hook = {
                _ = try? await fixture.join("lab3")
                // The broker of lab1 reads the registry.
                _ = try? await fixture.members("lab1")
            }
        }

        try await lab1.remove("lab2")

        #expect(try await fixture.registry.members() == ["lab1", "lab3"])
        #expect(try await fixture.agree("lab1", "lab3"))
        #expect(try await !fixture.agree("lab1", "lab2"))
    }

    @Test(arguments: ["lab", "other"])
    func `a host that joins a new team after the loss of its own accepts the hosts that join later`(
        team: String
    ) async throws {
        let fixture = TeamFixture(in: scratch)
        _ = try await fixture.createTeam()
        for name in ["lab2", "lab3"] { _ = try await fixture.join(name) }
        for name in ["lab2", "lab3"] { _ = try await fixture.members(name) }
        let lost = try #require(try fixture.folder("lab1").authority.load())
        try fixture.folder("lab2").etcd.saveAuthority(lost.certificatePEM)
        // The authority and etcd are lost. A new team starts on new ones.
        try fixture.folder("lab1").delete()
        _ = try await fixture.registry.memory.write([.deleteAll(prefix: TeamKey.root)], if: nil)
        let spec = TeamSpec(team: SanitizedText(team), etcd: TeamFixture.spec.etcd)
        _ = try await fixture.start("lab1").create(spec)

        for name in ["lab2", "lab3"] {
            _ = try await fixture.join(name)
            // The broker of the host reads the registry.
            _ = try await fixture.members(name)
        }

        for (one, other) in [("lab1", "lab2"), ("lab1", "lab3"), ("lab2", "lab3")] {
            #expect(try await fixture.agree(one, other), "\(one) and \(other)")
        }
        #expect(try fixture.folder("lab2").etcd.authority() == nil)
    }

    @Test func `a host that joins while another one renews its certificate is accepted there`() async throws {
        let fixture = TeamFixture(in: scratch)
        _ = try await fixture.createTeam()
        _ = try await fixture.join("lab2")
        fixture.duringResponse.withLock { hook in
            hook = {
                _ = try? await fixture.join("lab3")
                // The broker of lab2 reads the registry.
                _ = try? await fixture.members("lab2")
            }
        }

        _ = try await fixture.join("lab2")

        #expect(try await fixture.registry.members() == ["lab1", "lab2", "lab3"])
        #expect(try await fixture.agree("lab2", "lab3"))
    }

    @Test func `a removal that fails in the middle is recorded, and a second one completes it also after a restart`()
        async throws
    {
        let fixture = TeamFixture(in: scratch)
        let lab1 = try await fixture.createTeam()
        _ = try await fixture.join("lab2")
        let lab2: HostName = "lab2"
        let records = Atomic(0)
        let record = { @Sendable () async throws -> Void in _ = records.add(1, ordering: .relaxed) }
        fixture.registry.duringRemoval.withLock { hook in hook = { fixture.registry.memory.isReachable = false } }

        let problem = await #expect(throws: Problem.self) { try await lab1.remove(lab2, onRemoval: record) }

        #expect(problem?.code == .unavailable && problem?.detail.contains("is not complete") == true)
        #expect(problem?.hint == "run it again: patchbay team remove lab2")
        let first = records.load(ordering: .relaxed)
        #expect(first == 1)

        fixture.registry.memory.isReachable = true
        try await fixture.start("lab1").remove(lab2, onRemoval: record)
        let second = records.load(ordering: .relaxed)
        #expect(second == 2)
        #expect(try await fixture.registry.members() == ["lab1"] && fixture.registry.hosts.map(\.text) == ["lab1"])

        let unknown = await #expect(throws: Problem.self) { try await lab1.remove(lab2, onRemoval: record) }
        #expect(unknown?.code == .notFound)
    }

    @Test func `the user of a host without an entry is removed, which is recorded`() async throws {
        let fixture = TeamFixture(in: scratch)
        let lab1 = try await fixture.createTeam()
        let lab2: HostName = "lab2"
        try await fixture.registry.addHost(lab2)
        let records = Atomic(0)

        try await lab1.remove(lab2) { _ = records.add(1, ordering: .relaxed) }

        let count = records.load(ordering: .relaxed)
        #expect(count == 1 && !fixture.registry.hosts.contains(lab2))
    }

    @Test func `an invite is spent after an admission without an answer of the registry`() async throws {
        let fixture = TeamFixture(in: scratch)
        let lab1 = try await fixture.createTeam()
        let pairing = try await lab1.invite(TeamInviteSpec()).pairing
        fixture.registry.losesMember.withLock { $0 = true }
        await #expect(throws: Problem.self) { try await fixture.start("lab2").join(TeamJoinSpec(pairing: pairing)) }
        #expect(try await fixture.registry.members() == ["lab1", "lab2"])

        let problem = await #expect(throws: Problem.self) {
            try await fixture.start("lab3").join(TeamJoinSpec(pairing: pairing))
        }
        #expect(problem?.code == .unauthorized)
        // The host that was admitted needs a new invite.
        _ = try await fixture.join("lab2")
        #expect(try await fixture.agree("lab1", "lab2"))
    }
}
