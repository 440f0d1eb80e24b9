import FoundationEssentials
import Model
import TestSupport
import Testing

/// The backup of a team's authority, and its move to another host, with real brokers and a real etcd.
@Suite(.needs(.etcd), .scratchFolder) struct TeamAuthorityTests {
    private let scratch = ScratchFolder.current

    /// Runs `patchbay team authority` at the files of a broker.
    private func authority(
        _ command: String,
        _ file: String,
        at broker: RunningBroker,
        passphrase: String = "correct horse battery staple"
    ) async throws -> TestSupport.ExitStatus {
        let words = ["team", "authority", command, file, "--state-directory", broker.state]
        let program = try await broker.start(words, input: .pipe)
        try program.write("\(passphrase)\n")
        program.closeInput()
        return try await program.exitStatus()
    }

    @Test func `a member continues with the authority of a lost host, and admits the next one`() async throws {
        let team = try await RunningTeam(in: scratch)
        let file = scratch.file("lab.authority")
        #expect(try await authority("export", file, at: team.lab1, passphrase: "short") == .exited(64))
        #expect(try await authority("export", file, at: team.lab1) == .exited(0))
        #expect(try await authority("export", scratch.file("other"), at: team.lab2) == .exited(1))
        #expect(try await authority("import", file, at: team.lab2, passphrase: "another passphrase") == .exited(1))
        team.lab1.daemon.kill()

        #expect(try await authority("import", file, at: team.lab2) == .exited(0))

        let ports = try FreePorts.take(2)
        let lab3 = try await RunningBroker(
            in: scratch,
            named: "lab3",
            configuration: RunningTeam.configuration(api: ports[0], team: "127.0.0.1:\(ports[1])")
        )
        try await RunningTeam.join(lab3, as: "lab3", to: team.lab2)
        _ = try await team.lab2.ask("team", "remove", "lab1")
        #expect(try await lab3.teamStatus().authority?.text == "lab2")
        try await team.waitForHost("lab3", at: team.lab2)
        try await team.waitUntil { try await lab3.teamStatus().hosts.map(\.name.text) == ["lab2", "lab3"] }
    }

    @Test(.needs(.root, .usbmuxd, .python))
    func `without a backup of a lost authority, hosts move to a new team one by one, and no stream of theirs stops`()
        async throws
    {
        let team = try await RunningTeam(in: scratch)
        let host = try await BusyHost("lab3", in: scratch)
        let (lab2, lab3) = (team.lab2, host.broker)
        try await RunningTeam.join(lab3, as: "lab3", to: team.lab1)
        try await team.waitForEndpoint("\(host.id).lab3", at: lab2)
        team.lab1.daemon.kill()
        try FileManager.default.removeItem(atPath: team.lab1.state)
        try await host.check("without the authority")

        _ = try await lab2.ask("team", "leave")
        // A new etcd with the certificates of the new authority. The old one serves the hosts that have not moved yet.
        let ports = try FreePorts.take(2)
        let etcd = try await RunningTeam.startEtcd(on: [.loopback], ports: ports, for: lab2, named: "lab2", in: scratch)
        _ = try await lab3.ask("team", "leave")
        try await RunningTeam.join(lab3, as: "lab3", to: lab2)

        try await team.waitForEndpoint("\(host.id).lab3", at: lab2)
        try await host.check("in the new team")
        #expect(try await lab3.teamStatus().authority?.text == "lab2")
        _ = try await lab2.ask("call", "\(host.id).lab3", "get_screen")
        withExtendedLifetime(etcd) {}
    }
}
