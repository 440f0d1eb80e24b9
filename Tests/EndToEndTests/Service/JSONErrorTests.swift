import ArgumentParser
import FoundationEssentials
import TestSupport
import Testing

@testable import patchbay

@Suite(.scratchFolder) struct JSONErrorTests {
    private let scratch = ScratchFolder.current

    /// A command line for each command with `--json`.
    private static let lines = [
        "add x 127.0.0.1:1", "advertise x _http._tcp 80", "advertisements list", "advertisements set a1 key=value",
        "activity", "approve x", "audit", "call x tap", "config show", "dashboard", "deny x", "devices list", "doctor",
        "forward 9876", "grants", "invites", "log x", "reverse --list",
        "list", "pair", "brokers --nearby", "debug list x", "debug diff x 1 2", "debug show x 1", "lease x", "leases",
        "mcp check",
        "profiles list", "profiles check \(#filePath)",
        "remote on", "remote off", "remote status", "requests list", "requests approve WDJB-MJHT",
        "requests deny WDJB-MJHT",
        "show x", "status", "team status", "team init lab", "team invite", "team invites", "team join -", "tools x",
        "tunnels list",
        "tunnels show t1", "watch",
    ]

    private struct Report: Decodable {
        struct Fault: Decodable {
            let type: String
            let title: String
            let detail: String
            let code: String
            let exitCode: CInt
        }

        let schema: Int
        let error: Fault
    }

    @Test func `the table has every command with --json`() {
        func verbs(_ command: any ParsableCommand.Type, _ path: String) -> [String] {
            let subcommands = command.configuration.subcommands
            guard subcommands.isEmpty else { return subcommands.flatMap { verbs($0, "\(path)\($0._commandName) ") } }
            return Patchbay.helpMessage(for: command, columns: 80).contains("\n  --json ") ? [path] : []
        }

        let untried = verbs(Patchbay.self, "").filter { verb in !Self.lines.contains { "\($0) ".hasPrefix(verb) } }

        #expect(untried.isEmpty)
    }

    /// `doctor` needs no broker, and `team join` reads its string first.
    @Test(arguments: lines.filter { !["doctor", "team join -"].contains($0) })
    func `with --json an error is one line of JSON on standard error and the only output there`(line: String)
        async throws
    {
        let fault = try await fault(of: line, exitingWith: 69, in: scratch)

        #expect(fault.type == "urn:patchbay:problem:not-reachable")
        #expect(fault.code == "not-reachable")
        #expect(fault.detail.hasSuffix("no broker listens at \(scratch.file("none.sock"))"))
    }

    @Test(arguments: ["list --nonsense", "forward", "lst", "add x nowhere"])
    func `an invalid command line is reported in JSON, too`(line: String) async throws {
        let fault = try await fault(of: line, exitingWith: 64, in: scratch)

        #expect(fault.code == "usage")
    }

    private func fault(of line: String, exitingWith code: CInt, in scratch: ScratchFolder) async throws -> Report.Fault
    {
        let command = try await Program(
            Executable.built("patchbay"),
            line.split(separator: " ").map(String.init) + ["--json"],
            in: scratch,
            environment: ["PATCHBAY_SOCKET": scratch.file("none.sock")]
        )
        #expect(try await command.exitStatus() == .exited(code))
        for await _ in command.transcript.elements() {}
        let said = command.transcript.soFar
        try #require(said.count == 1 && said[0].source == .errors, "\(command.log)")
        let report = try JSONDecoder().decode(Report.self, from: Data(said[0].text.utf8))
        #expect(report.schema == 1)
        #expect(report.error.exitCode == code)
        return report.error
    }
}
