import Model
import TestSupport
import Testing

/// Hosts of a team whose wall clocks differ.
@Suite(.needs(.root, .etcd, .usbmuxd, .python), .timeLimit(.minutes(3)), .scratchFolder) struct TeamClockTests {
    private let scratch = ScratchFolder.current

    /// Restarts a broker with a wall clock that is ahead by some seconds.
    private func restart(_ broker: RunningBroker, ahead seconds: Int) async throws {
        broker.commandPrefix = try await ShiftedClock(in: scratch).prefix(ahead: seconds)
        try await broker.restart()
    }

    private func doctor(_ broker: RunningBroker) async throws -> String {
        let doctor = try await broker.start("doctor")
        _ = try await doctor.exitStatus(within: .seconds(30))
        return doctor.log
    }

    @Test(arguments: [30, -600, 86_400])
    func `hosts whose clocks differ give a phone to one holder for the whole time, and doctor names the difference`(
        seconds: Int
    ) async throws {
        let phone = try await SharedPhone(in: scratch)
        let (team, lab1, lab2) = (phone.team, phone.team.lab1, phone.team.lab2)
        try await restart(lab2, ahead: seconds)
        let id = try await team.waitForApp(on: Phones.one, at: lab2)
        for (broker, other) in [(lab1, "lab2"), (lab2, "lab1")] { try await team.waitForHost(other, at: broker) }

        for (broker, own, other, asked) in [(lab1, phone.ids[0], lab2, id), (lab2, id, lab1, phone.ids[0])] {
            let start = ContinuousClock.now
            _ = try await broker.ask("lease", own, "--for", "6s")
            try await team.waitUntil { try await other.leases().count == 1 }
            #expect(try await other.refused("lease", asked).contains("is leased to"))
            let wait = try await other.start("lease", asked, "--wait", "1m", "--for", "1m")
            #expect(try await wait.exitStatus(within: .seconds(30)) == .exited(0), "\(wait.log)")
            #expect(ContinuousClock.now - start >= .seconds(6))
            _ = try await other.ask("unlease", asked)
            try await team.waitUntil { try await broker.leases().isEmpty }
        }
        let grant = scratch.file("grant.sock")
        let pair = try await lab1.start("pair", "--socket", grant, "--grant-ttl", "1h")
        #expect(try await pair.exitStatus() == .exited(0), "\(pair.log)")
        _ = try await Program.run(
            Executable.built("patchbay"),
            ["call", "\(id).lab2", "get_screen"],
            in: scratch,
            environment: ["PATCHBAY_SOCKET": grant, "HOME": scratch.path]
        )

        let problem = try #require(try await lab2.teamStatus().problem)
        let (relation, url) = (seconds > 0 ? "ahead of" : "behind", team.etcd[0].endpoint)
        let pattern = try Regex("host is ([0-9]+) s \(relation) that of \(url)", as: (Substring, Substring).self)
        let difference = try #require(try pattern.firstMatch(in: problem)).1
        #expect(abs((Int(difference) ?? 0) - abs(seconds)) <= 2)
        try await team.waitUntil { try await self.doctor(lab2).firstMatch(of: pattern) != nil }
        #expect(try await lab1.teamStatus().problem == nil)
    }

    @Test func `a host more than a day behind learns the difference, and works again with the right time`() async throws
    {
        let team = try await RunningTeam(in: scratch)
        let lab2 = team.lab2
        try await restart(lab2, ahead: -200_000)

        let problem = try #require(try await lab2.teamStatus().problem)
        let behind = try #require(
            try problem.firstMatch(of: Regex("clock here is ([0-9]+) s behind", as: (Substring, Substring).self))
        )
        #expect((199_900...200_000).contains(Int(behind.1) ?? 0), "\(problem)")
        #expect(try await doctor(lab2).contains("is not valid before"))
        let server = try await lab2.teamStatus().etcd.first?.problem
        #expect(
            server?.contains("is not valid yet, because the clock of this host is at least 11") == true,
            "\(server ?? "")"
        )

        lab2.commandPrefix = []
        try await lab2.restart()
        for (broker, other) in [(team.lab1, "lab2"), (lab2, "lab1")] { try await team.waitForHost(other, at: broker) }
        #expect(try await lab2.teamStatus().problem == nil)
    }
}
