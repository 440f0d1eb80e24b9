import FoundationEssentials
import Glibc
import TestSupport
import Testing

/// The configuration of a running broker: SIGHUP, `patchbay config` and `patchbayd --check-config`.
@Suite(.needs(.python), .scratchFolder) struct ReloadTests {
    private let scratch = ScratchFolder.current

    private static func write(_ text: String, in scratch: ScratchFolder) throws {
        try Data(text.utf8).write(to: URL(filePath: scratch.file("patchbay.toml")))
    }

    /// Sends SIGHUP, and returns the log line with the result.
    private static func reload(_ broker: RunningBroker, until words: String) async throws -> String {
        let said = broker.daemon.transcript.soFar.count
        broker.daemon.send(SIGHUP)
        return try await broker.daemon.waitForLine(words, from: said)
    }

    @Test func `a reload applies the file, and names the keys that need a restart`() async throws {
        let broker = try await RunningBroker(in: scratch, configuration: "[api]\ntcp = false\n")
        let text = """
            [broker]
            log_level = "debug"
            [api]
            tcp = true
            [[endpoint]]
            name = "lab"
            address = "127.0.0.1"
            port = 9
            """
        try Self.write(text, in: scratch)

        let applied = try await Self.reload(broker, until: "the configuration was reloaded")
        #expect(applied.contains("changed=\"broker.log_level, endpoint\""), "\(applied)")
        #expect(try await broker.daemon.waitForLine("need a restart").contains("keys=api.tcp"))
        #expect(try await broker.ask("list").joined().contains("lab"))
        let shown = try await broker.ask("config", "show").joined(separator: "\n")
        #expect(shown.contains(/api.tcp +false +.*patchbay.toml:4; true after a restart/), "\(shown)")
        #expect(shown.contains(/broker.log_level +"debug" +.*patchbay.toml:2/), "\(shown)")
        #expect(shown.contains(/broker.state_directory +".*state" +--state-directory/), "\(shown)")
        #expect(shown.contains(/tunnels.max_connections +2000 +default/), "\(shown)")
        let doctor = try await broker.start("doctor")
        _ = try await doctor.exitStatus()
        #expect(doctor.log.contains("a restart of the broker applies api.tcp, which /"), "\(doctor.log)")

        try Self.write("[api]\ntcp = false\n", in: scratch)
        _ = try await Self.reload(broker, until: "the configuration was reloaded")
        try await eventually("the endpoint is offline") { try await broker.ask("list").joined().contains("offline") }
        #expect(try await Self.reload(broker, until: "reloaded").contains("no key has changed"))
    }

    @Test func `an invalid file changes nothing, and every error is in the log`() async throws {
        let broker = try await RunningBroker(in: scratch, configuration: "[api]\ntcp = false\n")
        try Self.write("[api]\ntcp = 1\nprot = 2\n[broker]\nlog_level = \"debug\"\n", in: scratch)

        let first = try await Self.reload(broker, until: "was not reloaded")
        #expect(first.contains("patchbay.toml:2:1: api.tcp must be true or false"), "\(first)")
        try await broker.daemon.waitForLine("patchbay.toml:3:1: api.prot: there is no such key")
        #expect(try await broker.ask("config", "show").joined(separator: "\n").contains(/api.tcp +false/))

        broker.daemon.terminate()
        #expect(try await broker.daemon.exitStatus() == .exited(0))
    }

    @Test func `config check prints every error of a file without a broker and exits with 78`() async throws {
        let file = try scratch.write("[api]\ntcp = 1\nprot = 2\n[audit]\nmax_age = \"90\"\n", to: "a.toml")
        let check = try await Program(Executable.built("patchbay"), ["config", "check", file], in: scratch)

        #expect(try await check.exitStatus() == .exited(78))
        let lines = check.log.split(separator: "\n").map(String.init).filter { $0.contains("error: ") }
        #expect(lines.count == 3, "\(check.log)")
        for (line, place) in zip(lines, ["2:1: api.tcp", "3:1: api.prot", "5:1: audit.max_age"]) {
            #expect(line.contains("error: \(file):\(place)"), "\(line)")
        }

        try scratch.write("[audit]\nmax_age = \"90d\"\n", to: "b.toml")
        let valid = try await Program.run(
            Executable.built("patchbay"),
            ["config", "check", scratch.file("b.toml")],
            in: scratch
        )
        #expect(valid.joined().contains("b.toml: the configuration is valid"))
    }
}
