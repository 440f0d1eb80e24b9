import FoundationEssentials
import Model
import TestSupport
import Testing

/// A team whose etcd has no space left.
@Suite(.needs(.etcd, .usbmuxd, .python), .timeLimit(.minutes(5)), .scratchFolder) struct TeamEtcdSpaceTests {
    private let scratch = ScratchFolder.current

    /// Writes to etcd until it refuses that.
    private func fill(_ team: RunningTeam) async throws {
        let value = String(repeating: "x", count: 100_000)
        for number in 0..<100 {
            do {
                try await team.etcdctl(["put", "/fill/\(number)", value], as: team.lab1, user: "root")
            } catch { return }
        }
        Issue.record("etcd has no limit")
    }

    @Test func `a full etcd is named with its remedy, refuses leases and joins, and all recover after the remedy`()
        async throws
    {
        let app = try await SampleApp(in: scratch)
        let rig = try await UsbmuxdFixture([Phones.one], in: scratch)
        let team = try await RunningTeam(in: scratch, ownPhones: rig, probing: app.port, quota: 4 << 20)
        let (lab1, lab2) = (team.lab1, team.lab2)
        let id = try await team.waitForApp(on: Phones.one, at: lab1)
        try await team.waitForEndpoint("\(id).lab1", at: lab2)
        let invite = try #require(try await lab1.ask("team", "invite").first)

        try await fill(team)

        try await team.waitUntil { try await lab1.ask("status").contains { $0.contains("alarm:NOSPACE") } }
        let doctor = try await lab1.start("doctor")
        _ = try await doctor.exitStatus()
        #expect(doctor.log.contains("etcdctl alarm disarm"), "\(doctor.log)")
        let refusal = try await lab1.refused("lease", id)
        #expect(refusal.contains("cannot be leased now") && refusal.contains("space"), "\(refusal)")
        let port = try FreePorts.take(2)
        let lab3 = try await RunningBroker(
            in: scratch,
            named: "lab3",
            configuration: RunningTeam.configuration(api: port[0], team: "127.0.0.1:\(port[1])")
        )
        let join = try await lab3.start(["team", "join", "-", "--host", "lab3"], input: .pipe)
        try join.write("\(invite)\n")
        join.closeInput()
        #expect(try await join.exitStatus(within: .seconds(30)) != .exited(0))
        #expect(join.log.contains("space"), "\(join.log)")
        // What needs no write goes on.
        _ = try await lab2.ask("call", "\(id).lab1", "get_screen")

        try await team.etcdctl(["del", "--prefix", "/fill/"], as: lab1, user: "root")
        let status = try await team.etcdctl(["endpoint", "status", "--write-out", "fields"], as: lab1, user: "root")
        let revision = try #require(status.first { $0.hasPrefix("\"Revision\"") }?.split(separator: " ").last)
        try await team.etcdctl(["compact", String(revision)], as: lab1, user: "root")
        try await team.etcdctl(["defrag"], as: lab1, user: "root")
        try await team.etcdctl(["alarm", "disarm"], as: lab1, user: "root")

        try await team.waitUntil { try await lab1.start("lease", id).exitStatus(within: .seconds(30)) == .exited(0) }
        // The watches that are older than the compaction go on.
        _ = try await lab2.ask("add", "till", "127.0.0.1:9", "--kind", "appreveal")
        try await team.waitForEndpoint("till.lab2", "", at: lab1)
        try await team.waitUntil { try await lab1.teamStatus().problem == nil }
        try await RunningTeam.join(lab3, as: "lab3", to: lab1)
    }
}
