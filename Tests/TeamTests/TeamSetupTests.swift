import FoundationEssentials
import Model
import Samples
import SystemIO
import TestSupport
import Testing
import Transport

@testable import Team

@Suite(.scratchFolder) struct TeamSetupTests {
    private let scratch = ScratchFolder.current

    @Test func `a broker without a team says so, and refuses the commands of a team`() async throws {
        let fixture = TeamFixture(in: scratch)
        let setup = try await fixture.start("lab1")

        #expect(try await setup.status() == TeamStatus())
        await #expect(throws: Problem.self) { try await setup.leave() }
        await #expect(throws: Problem.self) { try await setup.invite(TeamInviteSpec()) }
        await #expect(throws: Problem.self) {
            try await setup.issue(TeamCertificateSpec(request: CertificateKey().signingRequest(), addresses: []))
        }
    }

    @Test func `the first host gets the authority, its certificate and its entries`() async throws {
        let fixture = TeamFixture(in: scratch)
        let setup = try await fixture.start("lab1")
        let status = try await setup.create(TeamFixture.spec)

        #expect(status.team?.text == "lab" && status.host?.text == "lab1" && status.authority == status.host)
        #expect(status.problem == nil && !status.restartNeeded)
        #expect(try await fixture.registry.members() == ["lab1"])
        #expect(fixture.registry.hosts.map(\.text) == ["lab1"])
        let folder = try fixture.folder("lab1")
        let identity = try #require(try folder.identity.load())
        #expect(identity.host.text == "lab1" && identity.pin == status.key)
        #expect(try folder.etcd.administrator() != nil)
        #expect(FileStatus(atPath: folder.path)?.modeText == "0700")
        for name in try FileManager.default.contentsOfDirectory(atPath: folder.path) {
            #expect(FileStatus(atPath: "\(folder.path)/\(name)")?.modeText == "0600", "\(name)")
        }
    }

    @Test func `without etcd the authority is kept, and the same command completes the team later`() async throws {
        let fixture = TeamFixture(in: scratch)
        fixture.registry.memory.isReachable = false
        let setup = try await fixture.start("lab1")
        let first = try await setup.create(TeamFixture.spec)
        #expect(first.problem?.contains("unreachable") == true)
        let authority = try #require(try fixture.folder("lab1").authority.load())

        fixture.registry.memory.isReachable = true
        let second = try await setup.create(TeamFixture.spec)
        #expect(second.problem == nil && second.key == first.key)
        #expect(try fixture.folder("lab1").authority.load()?.certificatePEM == authority.certificatePEM)
        #expect(try await fixture.registry.members() == ["lab1"])
    }

    @Test func `another name of the team or of the host is refused`() async throws {
        let fixture = TeamFixture(in: scratch)
        let setup = try await fixture.createTeam()
        var other = TeamFixture.spec
        other.host = HostName("lab9")

        await #expect(throws: Problem.self) { try await setup.create(other) }
        await #expect(throws: Problem.self) {
            try await setup.create(TeamSpec(team: SanitizedText("other"), etcd: TeamFixture.spec.etcd))
        }
    }

    @Test(arguments: ["http://10.0.0.5:2379", "10.0.0.5:2379", "https://", "https://10.0.0.5:0", "https://a b:2379"])
    func `only a URL of a TLS server is accepted as etcd`(url: String) async throws {
        let fixture = TeamFixture(in: scratch)
        let setup = try await fixture.start("lab1")

        await #expect(throws: Problem.self) {
            try await setup.create(TeamSpec(team: SanitizedText("lab"), etcd: [url]))
        }
    }

    @Test func `a host cannot be named root, which is the administrator of etcd`() async throws {
        let fixture = TeamFixture(in: scratch)
        let lab1 = try await fixture.createTeam()
        var spec = TeamFixture.spec
        spec.host = HostName("root")
        let other = try await fixture.start("other")
        let pairing = try await lab1.invite(TeamInviteSpec()).pairing

        await #expect(throws: Problem.self) { try await other.create(spec) }
        await #expect(throws: Problem.self) {
            try await other.join(TeamJoinSpec(pairing: pairing, host: HostName("root")))
        }
        #expect(fixture.registry.hosts.map(\.text) == ["lab1"])
    }

    @Test func `a host joins with its own key, and knows the members and the registry`() async throws {
        let fixture = TeamFixture(in: scratch)
        _ = try await fixture.createTeam()
        let setup = try await fixture.join("lab2")
        let status = try await setup.status()

        #expect(status.team?.text == "lab" && status.host?.text == "lab2" && status.authority?.text == "lab1")
        #expect(status.hosts.map(\.name.text) == ["lab1", "lab2"])
        #expect(status.etcd.map(\.url) == ["https://10.0.0.5:2379"])
        let (lab1, lab2) = (try fixture.folder("lab1"), try fixture.folder("lab2"))
        let identity = try #require(try lab2.identity.load())
        #expect(status.hosts.last?.key == identity.pin)
        #expect(try lab1.identity.load()?.authorityPEM == identity.authorityPEM)
        #expect(try lab2.authority.load() == nil)
        #expect(try lab2.etcd.administrator() == nil)
        #expect(fixture.registry.hosts.map(\.text) == ["lab1", "lab2"])
    }

    @Test func `an invite admits one host`() async throws {
        let fixture = TeamFixture(in: scratch)
        let lab1 = try await fixture.createTeam()
        let pairing = try await lab1.invite(TeamInviteSpec()).pairing
        _ = try await fixture.start("lab2").join(TeamJoinSpec(pairing: pairing))

        let error = await #expect(throws: Problem.self) {
            try await fixture.start("lab3").join(TeamJoinSpec(pairing: pairing))
        }
        #expect(error?.code == .unauthorized)
        #expect(try await fixture.registry.members() == ["lab1", "lab2"])
    }

    @Test func `one invite lets several hosts join, and the authority revokes it`() async throws {
        let fixture = TeamFixture(in: scratch)
        let lab1 = try await fixture.createTeam()
        let pairing = try await lab1.invite(TeamInviteSpec(hosts: 50, seconds: 86_400, names: ["lab*"])).pairing
        for host in ["lab2", "lab3"] { _ = try await fixture.start(host).join(TeamJoinSpec(pairing: pairing)) }
        let invite = try #require(try await lab1.invites().first)
        #expect(invite.admitted.map(\.text) == ["lab2", "lab3"] && invite.hosts == 50)

        try await lab1.revoke(invite: invite.id)

        let late = try await fixture.start("lab4")
        await #expect(throws: Problem.self) { try await late.join(TeamJoinSpec(pairing: pairing)) }
        await #expect(throws: Problem.self) { try await lab1.revoke(invite: invite.id) }
        let other = try await fixture.start("lab2")
        await #expect(throws: Problem.self) { try await other.invites() }
        #expect(try await fixture.registry.members() == ["lab1", "lab2", "lab3"])
    }

    @Test func `no host joins a team that is not complete, and the invite stays valid`() async throws {
        let fixture = TeamFixture(in: scratch)
        let lab1 = try await fixture.createTeam()
        let pairing = try await lab1.invite(TeamInviteSpec()).pairing
        let entry = TeamKey.member("lab1").text
        _ = try await fixture.registry.memory.write([.delete(key: entry)], if: nil)
        let lab2 = try await fixture.start("lab2")

        let error = await #expect(throws: Problem.self) { try await lab2.join(TeamJoinSpec(pairing: pairing)) }

        #expect(error?.code == .conflict && error?.hint?.contains("patchbay team init lab") == true, "\(error)")
        #expect(try await fixture.registry.members().isEmpty)
        #expect(try await lab1.create(TeamFixture.spec).problem == nil)
        _ = try await lab2.join(TeamJoinSpec(pairing: pairing))
        #expect(try await fixture.registry.members() == ["lab1", "lab2"])
    }

    @Test func `the authority does not leave a host that has just joined`() async throws {
        let fixture = TeamFixture(in: scratch)
        let lab1 = try await fixture.createTeam()
        let lab2 = TeamMember(
            name: "lab2",
            key: try #require(KeyPin(digest: Array(repeating: 2, count: KeyPin.byteCount))),
            addedAt: Date()
        )
        try await TeamAuthority(store: fixture.registry.memory).add(lab2)

        let error = await #expect(throws: Problem.self) { try await lab1.leave() }

        #expect(error?.detail.contains("lab2") == true)
        #expect(try await lab1.status().team != nil)
    }

    @Test func `a name that another host has is refused, and the invite stays valid`() async throws {
        let fixture = TeamFixture(in: scratch)
        _ = try await fixture.createTeam()
        _ = try await fixture.join("lab2")
        let pairing = try await fixture.start("lab1").invite(TeamInviteSpec()).pairing
        let lab3 = try await fixture.start("lab3")

        for name in ["lab1", "lab2"] {
            let error = await #expect(throws: Problem.self) {
                try await lab3.join(TeamJoinSpec(pairing: pairing, host: HostName(name)))
            }
            #expect(error?.code == .conflict)
        }
        _ = try await lab3.join(TeamJoinSpec(pairing: pairing))
        #expect(try await fixture.registry.members() == ["lab1", "lab2", "lab3"])
    }

    @Test func `after a lost response, the host joins again with a new invite and the same key`() async throws {
        let fixture = TeamFixture(in: scratch)
        let lab1 = try await fixture.createTeam()
        let lab2 = try await fixture.start("lab2")
        fixture.losesResponse = true
        let first = try await lab1.invite(TeamInviteSpec()).pairing
        await #expect(throws: Problem.self) { try await lab2.join(TeamJoinSpec(pairing: first)) }
        #expect(try await lab2.status().team == nil)

        fixture.losesResponse = false
        let second = try await lab1.invite(TeamInviteSpec()).pairing
        #expect(try await lab2.join(TeamJoinSpec(pairing: second)).host?.text == "lab2")
        #expect(try await fixture.registry.members() == ["lab1", "lab2"])
    }

    @Test func `an invite that the registry could not serve stays valid`() async throws {
        let fixture = TeamFixture(in: scratch)
        let lab1 = try await fixture.createTeam()
        let pairing = try await lab1.invite(TeamInviteSpec()).pairing
        let lab2 = try await fixture.start("lab2")
        fixture.registry.memory.isReachable = false
        await #expect(throws: Problem.self) { try await lab2.join(TeamJoinSpec(pairing: pairing)) }

        fixture.registry.memory.isReachable = true
        #expect(try await lab2.join(TeamJoinSpec(pairing: pairing)).host?.text == "lab2")
    }

    @Test func `a removed host has no entry, no user, and no place in the saved list`() async throws {
        let fixture = TeamFixture(in: scratch)
        let lab1 = try await fixture.createTeam()
        _ = try await fixture.join("lab2")
        let lab2: HostName = "lab2"
        try await lab1.remove(lab2)

        #expect(try await fixture.registry.members() == ["lab1"])
        #expect(fixture.registry.hosts.map(\.text) == ["lab1"])
        let error = await #expect(throws: Problem.self) { try await lab1.remove(lab2) }
        #expect(error?.code == .notFound)
    }

    @Test func `a member can neither invite nor remove, and names the host that can`() async throws {
        let fixture = TeamFixture(in: scratch)
        _ = try await fixture.createTeam()
        let lab2 = try await fixture.join("lab2")
        let lab1: HostName = "lab1"

        for command in [{ _ = try await lab2.invite(TeamInviteSpec()) }, { try await lab2.remove(lab1) }] {
            let error = await #expect(throws: Problem.self) { try await command() }
            #expect(error?.hint == "run the command on lab1")
        }
    }

    @Test func `leaving deletes the own entries and the key`() async throws {
        let fixture = TeamFixture(in: scratch)
        _ = try await fixture.createTeam()
        let lab2 = try await fixture.join("lab2")
        let key = TeamKey.host("lab2").text
        _ = try await fixture.registry.memory.write([.put(key: key, value: [1], sessionLease: nil)], if: nil)
        try await lab2.leave()

        #expect(try await fixture.registry.memory.list(key).entries.isEmpty)
        #expect(try await lab2.status() == TeamStatus())
        let path = try fixture.folder("lab2").path
        #expect(!FileManager.default.fileExists(atPath: path))
    }

    @Test func `the authority leaves only as the last host`() async throws {
        let fixture = TeamFixture(in: scratch)
        _ = try await fixture.createTeam()
        _ = try await fixture.join("lab2")
        let lab1 = try await fixture.start("lab1")
        _ = try await lab1.create(TeamFixture.spec)
        await #expect(throws: Problem.self) { try await lab1.leave() }

        try await lab1.remove("lab2")
        try await lab1.leave()
        #expect(try await lab1.status().team == nil)
        #expect(try await fixture.registry.memory.list(TeamKey.root).entries.isEmpty)
        #expect(fixture.registry.hosts.isEmpty)
    }

    @Test func `the administrator of an existing cluster is kept, with the authority of its servers`() async throws {
        let fixture = TeamFixture(in: scratch)
        let cluster = try CertificateAuthority(creatingFor: SanitizedText("cluster"))
        let key = try CertificateKey()
        let certificate = try cluster.issue(.etcdRoot, request: key.signingRequest())
        var spec = TeamFixture.spec
        spec.administrator = EtcdAdministratorSpec(
            authority: cluster.certificatePEM,
            certificate: certificate.pem,
            key: key.pem
        )
        _ = try await fixture.start("lab1").create(spec)
        _ = try await fixture.start("lab1")
        _ = try await fixture.join("lab2")

        let administrators = fixture.registry.administrators
        #expect(administrators.allSatisfy { $0.authority == cluster.certificatePEM && $0.key == key.pem })
        #expect(try fixture.folder("lab2").etcd.authority() == cluster.certificatePEM)
    }

    @Test func `a host with the name of another user of etcd does not join, and is told why`() async throws {
        let fixture = TeamFixture(in: scratch)
        _ = try await fixture.createTeam()
        fixture.registry.addUser("lab2")
        let problem = await #expect(throws: Problem.self) { try await fixture.join("lab2") }

        #expect(problem?.detail == "etcd has another user with the name lab2")
        #expect(problem?.hint == "choose another name with --host")
        #expect(try await fixture.registry.members() == ["lab1"])
    }

    @Test func `a team with the name of another user of etcd is refused, and completed under another name`()
        async throws
    {
        let fixture = TeamFixture(in: scratch)
        fixture.registry.addUser("lab1")
        let setup = try await fixture.start("lab1")
        let problem = await #expect(throws: Problem.self) { try await setup.create(TeamFixture.spec) }

        #expect(problem?.code == .conflict && problem?.detail == "etcd has another user with the name lab1")
        #expect(problem?.hint == "choose another name with --host")
        var spec = TeamFixture.spec
        spec.host = HostName("lab9")
        #expect(try await setup.create(spec).problem == nil)
        #expect(try await fixture.registry.members() == ["lab9"])
        #expect(try fixture.folder("lab1").identity.load()?.host == spec.host)
    }

    @Test(arguments: ["lab1", "other"])
    func `a registry with hosts of another authority is refused, and stays as it is after leaving`(name: String)
        async throws
    {
        let fixture = TeamFixture(in: scratch)
        let registry = fixture.registry
        let (host, key) = (try #require(HostName(name)), try #require(KeyPin(String(repeating: "A", count: 52))))
        let authority = TeamAuthority(store: registry.memory)
        try await authority.create(TeamFixture.spec.team)
        try await authority.add(TeamMember(name: host, key: key, addedAt: Date()))
        try await registry.addHost(host)
        let setup = try await fixture.start("lab1")
        let problem = await #expect(throws: Problem.self) { try await setup.create(TeamFixture.spec) }

        #expect(problem?.code == .conflict)
        #expect(problem?.detail == "these etcd servers have another team with this name, and its hosts \(name)")
        try await setup.leave()
        #expect(try await registry.members() == [name] && registry.hosts == [host])
        #expect(try await setup.status().team == nil)
    }

    @Test func `a team does not move to etcd servers with another team of its name`() async throws {
        let fixture = TeamFixture(in: scratch)
        let store = fixture.registry.memory
        let lab1 = try await fixture.createTeam()
        _ = try await fixture.join("lab2")
        let saved = try await fixture.members("lab1").all
        // The new servers.
        _ = try await store.write([.deleteAll(prefix: TeamKey.root)], if: nil)
        let (host, key): (HostName, KeyPin) = ("lab9", try #require(KeyPin(String(repeating: "A", count: 52))))
        let authority = TeamAuthority(store: store)
        try await authority.create(TeamFixture.spec.team)
        try await authority.add(TeamMember(name: host, key: key, addedAt: Date()))
        let spec = TeamSpec(team: TeamFixture.spec.team, etcd: ["https://10.0.0.9:2379"])
        let problem = await #expect(throws: Problem.self) { try await lab1.create(spec) }

        #expect(problem?.detail == "these etcd servers have another team with this name, and its hosts lab9")
        #expect(problem?.hint == "name the etcd servers of this team with --etcd")
        #expect(try await fixture.registry.members() == ["lab9"])
        let team = try fixture.team("lab1")
        #expect(try await team.members().all == saved)
        #expect(try await team.membership()?.etcd == TeamFixture.spec.etcd)
    }

    @Test func `etcd servers with another team are refused`() async throws {
        let fixture = TeamFixture(in: scratch)
        try await TeamAuthority(store: fixture.registry.memory).create(SanitizedText("other"))
        let setup = try await fixture.start("lab1")
        let problem = await #expect(throws: Problem.self) { try await setup.create(TeamFixture.spec) }

        #expect(problem?.code == .conflict && problem?.detail.contains(#""other""#) == true)
    }

    @Test func `an etcd node gets certificates for its own key`() async throws {
        let fixture = TeamFixture(in: scratch)
        let lab1 = try await fixture.createTeam()
        let key = try CertificateKey()
        let spec = TeamCertificateSpec(request: try key.signingRequest(), addresses: ["10.0.0.5"])
        let issued = try await lab1.issue(spec)

        for pem in [issued.certificate, issued.peerCertificate] {
            #expect(throws: Never.self) { try EtcdClientCertificate(certificate: pem, key: key.pem) }
        }
        #expect(try issued.authority == fixture.folder("lab1").authority.load()?.certificatePEM)
    }
}
