import FoundationEssentials
import Model
import TestSupport
import Testing

/// A broker that joins and leaves a team while clients use it.
@Suite(.needs(.root, .etcd, .usbmuxd, .python), .timeLimit(.minutes(5)), .scratchFolder) struct TeamChangeTests {
    private let scratch = ScratchFolder.current

    @Test func `a broker joins and leaves a team, and disturbs no stream, grant, session and lease`() async throws {
        let host = try await BusyHost("lab3", in: scratch)
        let team = try await RunningTeam(in: scratch)
        let (lab1, lab3) = (team.lab1, host.broker)
        let daemon = lab3.daemon
        try await host.check("alone")

        try await RunningTeam.join(lab3, as: "lab3", to: lab1)

        try await team.waitForEndpoint("\(host.id).lab3", at: lab1)
        try await team.waitUntil { try await lab1.leases().map(\.id) == ["\(host.lease.id).lab3"] }
        try await host.check("in the team")
        #expect(try await lab3.teamStatus().problem == nil)
        // Both names lead to the app of this host.
        _ = try await lab3.ask("call", "\(host.id).lab3", "get_screen")
        _ = try await lab1.ask("call", "\(host.id).lab3", "get_screen")

        _ = try await lab3.ask("team", "leave")

        try await team.waitUntil { try await !lab1.endpoints().contains { $0.id.text.hasPrefix(host.id) } }
        try await host.check("after the team")
        _ = try await lab3.ask("call", "\(host.id).lab3", "get_screen")
        #expect(try await lab3.teamStatus() == TeamStatus())
        #expect(try await lab3.endpoints().map(\.id.text) == [host.id])

        _ = try await lab1.ask("team", "remove", "lab3")
        try await RunningTeam.join(lab3, as: "lab3", to: lab1)
        try await team.waitForEndpoint("\(host.id).lab3", at: lab1)
        try await host.check("in the team again")

        // A removed host goes on alone, and says so.
        _ = try await lab1.ask("team", "remove", "lab3")
        let problem = "lab3 was removed from the team"
        try await team.waitUntil { try await lab3.teamStatus().problem == problem }
        let status = try await lab3.ask("status").joined(separator: "\n")
        #expect(status.contains(problem), "\(status)")
        let doctor = try await lab3.start("doctor")
        _ = try await doctor.exitStatus()
        #expect(doctor.log.contains(problem) && doctor.log.contains("patchbay team leave"), "\(doctor.log)")
        try await daemon.waitForLine("takes no part in the team any more")
        try await host.check("removed")
        #expect(daemon === lab3.daemon)
    }

    @Test func `an address with the name of the host stays valid after it has left, also after a restart`() async throws
    {
        let (team, app) = try await RunningTeam.startWithApp(in: scratch)
        defer { withExtendedLifetime(app) {} }
        _ = try await team.lab2.ask("team", "leave")
        for _ in 0..<2 {
            try await team.waitForEndpoint("shop", at: team.lab2)
            _ = try await team.lab2.ask("call", "shop.lab2", "get_screen")
            try await team.lab2.restart()
        }
        let other = try await team.lab2.refused("call", "shop.lab1", "get_screen", "--wait", "0s")
        #expect(other.contains("no endpoint"), "\(other)")
    }

    @Test func `a lease that is older than the team ends if another host has leased the phone, and the streams stay`()
        async throws
    {
        let host = try await BusyHost("lab3", in: scratch)
        let rig = try await UsbmuxdFixture([Phones.one], in: scratch)
        let team = try await RunningTeam(in: scratch, ownPhones: rig, probing: host.app.port)
        let id = try await team.waitForApp(on: Phones.one, at: team.lab1)
        let lease = try await team.lab1.ask("lease", id)
        try await team.waitUntil { try await team.lab2.leases().count == 1 }

        try await RunningTeam.join(host.broker, as: "lab3", to: team.lab1)

        try await team.waitUntil { try await host.broker.leases().map(\.id) == ["l1.lab1"] }
        let renewal = try await host.broker.refused("lease", host.id)
        #expect(renewal.contains("on the host lab1"), "\(renewal), \(lease)")
        try await host.stream.waitForMore()
    }
}
