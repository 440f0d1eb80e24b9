import FoundationEssentials
import Model
import TestSupport
import Testing

/// Inviting, joining, leaving and removing with real brokers and a real etcd.
@Suite(.needs(.etcd), .scratchFolder) struct TeamSetupTests {
    private let scratch = ScratchFolder.current

    private func join(_ broker: RunningBroker, _ pairing: String, as host: String) async throws -> Program {
        let join = try await broker.start(["team", "join", "-", "--host", host], input: .pipe)
        try join.write(pairing + "\n")
        join.closeInput()
        return join
    }

    private func invite(_ broker: RunningBroker) async throws -> String {
        try #require(try await broker.ask("team", "invite").first { $0.hasPrefix(TeamPairingString.prefix) })
    }

    @Test func `a host joins with one invite, and the broker with another key never sees it`() async throws {
        let team = try await RunningTeam(in: scratch)
        let lab3 = try await RunningBroker(in: scratch, named: "lab3", configuration: "[api]\ntcp = false\n")
        let pairing = try TeamPairingString(try await invite(team.lab1))
        let otherKey = try #require(try await team.lab2.teamStatus().key)
        let forged = TeamPairingString(host: pairing.host, port: pairing.port, pin: otherKey, invite: pairing.invite)
        #expect(try await join(lab3, forged.description, as: "lab3").exitStatus() == .exited(75))
        #expect(try await lab3.teamStatus().team == nil)

        let taken = try await join(lab3, pairing.description, as: "lab2")
        #expect(try await taken.exitStatus() == .exited(1), "\(taken.log)")
        let joined = try await join(lab3, pairing.description, as: "lab3")
        #expect(try await joined.exitStatus() == .exited(0), "\(joined.log)")
        #expect(try await lab3.teamStatus().hosts.map(\.name.text) == ["lab1", "lab2", "lab3"])
        let again = try await join(lab3, pairing.description, as: "lab3")
        #expect(try await again.exitStatus() == .exited(77), "\(again.log)")
    }

    @Test func `the commands of the authority, and the state of each host, are in the status`() async throws {
        let team = try await RunningTeam(in: scratch)
        let (first, second) = (try await team.lab1.teamStatus(), try await team.lab2.teamStatus())
        #expect(first.authority?.text == "lab1" && second.authority == first.authority)
        #expect(first.hosts.map(\.state) == [.online, .online] && second.hosts.map(\.state) == [.online, .online])
        #expect(!first.restartNeeded && first.etcd.allSatisfy { $0.problem == nil } && !first.etcd.isEmpty)
        for command in [["team", "invite"], ["team", "remove", "lab1"]] {
            let refused = try await team.lab2.start(command)
            #expect(try await refused.exitStatus() == .exited(1), "\(refused.log)")
        }
        let refused = try await team.lab1.start("team", "leave")
        #expect(try await refused.exitStatus() == .exited(1), "\(refused.log)")

        _ = try await team.lab2.ask("team", "leave")
        #expect(try await team.lab2.teamStatus() == TeamStatus())
        #expect(!FileManager.default.fileExists(atPath: "\(team.lab2.state)/team"))
        _ = try await team.lab1.ask("team", "remove", "lab2")
        try await team.waitUntil { try await team.lab1.teamStatus().hosts.map(\.name.text) == ["lab1"] }
        _ = try await team.lab1.ask("team", "leave")
        #expect(try await team.lab1.teamStatus().team == nil)
    }

    @Test func `several hosts join with one string in a file, each once, until it is revoked`() async throws {
        let team = try await RunningTeam(in: scratch)
        let string = try #require(try await team.lab1.ask("team", "invite", "--hosts", "3", "--host", "lab*").first)
        let file = scratch.file("invite.txt")
        try Data("\(string)\n".utf8).write(to: URL(filePath: file))
        func join(_ host: String) async throws -> TestSupport.ExitStatus {
            let broker = try await RunningBroker(in: scratch, named: host, configuration: "[api]\ntcp = false\n")
            let join = try await broker.start("team", "join", file, "--host", host)
            return try await join.exitStatus()
        }

        #expect(try await join("lab3") == .exited(0))
        #expect(try await join("mac1") == .exited(77))
        #expect(try await join("lab4") == .exited(0))
        let row = try #require(try await team.lab1.ask("team", "invites").last)
        #expect(row.contains("2 of 3") && row.contains("lab3, lab4"), "\(row)")
        _ = try await team.lab1.ask("team", "revoke", String(row.prefix { $0 != " " }))
        #expect(try await join("lab5") == .exited(77))
        #expect(try await team.lab1.teamStatus().hosts.map(\.name.text) == ["lab1", "lab2", "lab3", "lab4"])
    }
}
