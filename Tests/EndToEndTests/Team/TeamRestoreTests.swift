import FoundationEssentials
import Model
import TestSupport
import Testing

/// Hosts that return with an earlier state, or under another name, with real brokers and a real etcd.
@Suite(.needs(.etcd), .scratchFolder) struct TeamRestoreTests {
    private let scratch = ScratchFolder.current

    @Test func `a host from a backup before its removal is refused, and names the next step`() async throws {
        let team = try await RunningTeam(in: scratch)
        let (folder, backup) = ("\(team.lab2.state)/team", scratch.file("backup"))
        try FileManager.default.copyItem(atPath: folder, toPath: backup)
        let old = try await team.lab2.teamStatus().key
        _ = try await team.lab2.ask("team", "leave")
        _ = try await team.lab1.ask("team", "remove", "lab2")
        try await RunningTeam.join(team.lab2, as: "lab2", to: team.lab1)
        try await team.waitForHost("lab2", at: team.lab1)

        try FileManager.default.removeItem(atPath: folder)
        try FileManager.default.copyItem(atPath: backup, toPath: folder)
        try await team.lab2.restart()

        try await team.waitUntil { try await team.lab2.teamStatus().problem == "lab2 was removed from the team" }
        let status = try await team.lab2.teamStatus()
        #expect(status.hint == "patchbay team leave" && status.key == old)
        #expect(try await team.lab1.teamStatus().hosts.last?.key != old)
    }

    /// An administrator of etcd may delete the user of a host before the team removes the host.
    @Test(arguments: [true, false])
    func `a host whose user in etcd goes first learns it, leaves, and is removed in either order`(leavesFirst: Bool)
        async throws
    {
        let team = try await RunningTeam(in: scratch)
        try await team.etcdctl(["user", "delete", "lab2"], as: team.lab1, user: "root")
        try await team.lab2.restart()
        try await team.waitUntil {
            try await team.lab2.teamStatus().problem?.hasPrefix("the registry of the team refused this host") == true
        }
        #expect(try await team.lab2.teamStatus().hint == "patchbay team leave, if lab1 has removed this host")

        if leavesFirst { _ = try await team.lab2.ask("team", "leave") }
        _ = try await team.lab1.ask("team", "remove", "lab2")
        #expect(try await team.lab1.teamStatus().hosts.map(\.name.text) == ["lab1"])
        #expect(try await team.lab1.refused("team", "remove", "lab2").contains("the team has no host lab2"))
        if !leavesFirst { _ = try await team.lab2.ask("team", "leave") }

        #expect(try await team.lab2.teamStatus().team == nil)
        try await RunningTeam.join(team.lab2, as: "lab2", to: team.lab1)
        try await team.waitForHost("lab2", at: team.lab1)
    }

    @Test func `a host keeps its name when its machine is renamed, and takes another one only after leaving`()
        async throws
    {
        let team = try await RunningTeam(in: scratch)
        let string = try #require(try await team.lab1.ask("team", "invite").first)
        func join() async throws -> TestSupport.ExitStatus {
            let join = try await team.lab2.start(["team", "join", "-", "--host", "lab9"], input: .pipe)
            try join.write("\(string)\n")
            join.closeInput()
            return try await join.exitStatus()
        }

        #expect(try await join() == .exited(1))
        #expect(try await team.lab2.teamStatus().host?.text == "lab2")
        _ = try await team.lab2.ask("team", "leave")
        #expect(try await join() == .exited(0))
        _ = try await team.lab1.ask("team", "remove", "lab2")
        try await team.waitUntil { try await team.lab1.teamStatus().hosts.map(\.name.text) == ["lab1", "lab9"] }
    }
}
