import FoundationEssentials
import Glibc
import TestSupport
import Testing

/// Tokens and secrets, valid and invalid, do not leak from the broker.
@Suite(.needs(.python), .scratchFolder) struct LeakTests {
    private let scratch = ScratchFolder.current
    private static let script = String(#filePath.dropLast("LeakTests.swift".count)) + "leaks.py"

    /// The strings to search for. For a token it is the first part of its secret, because a copy may be truncated.
    private static func needles(_ lines: [String]) -> [String] {
        lines.compactMap { line in
            let words = line.split(separator: " ")
            return switch words.first {
            case "token": words[1].split(separator: "_").dropFirst(2).first.map { String($0.prefix(12)) }
            case "secret": String(words[1].prefix(26))
            default: nil
            }
        }
    }

    /// Returns the strings that occur in the command line or environment of a process.
    private func found(_ needles: [String], in program: Program) throws -> [String] {
        try ["cmdline", "environ"].flatMap { name in
            let path = "/proc/\(program.processID)/\(name)"
            let text = String(decoding: try Data(contentsOf: URL(filePath: path)), as: UTF8.self)
            #expect(!text.isEmpty)
            return needles.filter(text.contains)
        }
    }

    @Test func `tokens and secrets never appear in the broker's logs, command line, environment or files`()
        async throws
    {
        let port = try FreePorts.take()[0]
        let broker = try await RunningBroker(
            in: scratch,
            configuration: "[broker]\nlog_level = \"trace\"\n[api]\nport = \(port)\n"
        )
        _ = try await broker.ask("add", "lab", "127.0.0.1:9")

        // Commands that are still running.
        let pair = try await broker.start("pair", "--uses", "2")
        let string = try await pair.waitForLine("PATCHBAY:1:")
        let token = try #require(string.split(separator: ":").last)
        let joined = try await broker.start("join", "-", "--name", "agent", input: .pipe)
        try joined.write(string + "\n")
        #expect(try await joined.exitStatus() == .exited(0), "\(joined.log)")
        let grant = try #require(try await broker.ask("grants").last?.split(separator: " ").first.map(String.init))
        let join = try await broker.start("join", "-", input: .pipe)
        try join.write(string)
        let secret = "s3cr3tTypedByAPerson4711"
        let set = try await broker.start("secret", "set", "lab", input: .pipe)
        try set.write(secret)
        let watch = try await broker.start("watch", "--json")
        try await watch.waitForLine("snapshot")
        let use = try await Program(
            "python3",
            [Self.script, "use", broker.socket, "\(port)", "lab"],
            in: scratch,
            input: .pipe
        )
        let statuses = try await use.waitForLine("statuses", within: .seconds(60))
        #expect(statuses == "statuses 200 201 204 400 401 403 404 415 429 431")
        let needles = Self.needles(use.output + ["token \(token)", "secret \(secret)"])
        #expect(needles.count > 30 && needles.allSatisfy { $0.count >= 12 })

        for program in [broker.daemon, pair, join, set, watch, use] {
            #expect(try found(needles, in: program).isEmpty, "\(program.name)")
        }
        try await expectNothing(of: needles, besides: grant, in: scratch)
        for program in [join, set] { try program.write("\n") }
        #expect(try await set.exitStatus() == .exited(0), "\(set.log)")
        #expect(try await join.exitStatus() == .exited(0), "\(join.log)")
        let late = try await broker.start("join", "-", input: .pipe)
        try late.write(string + "\n")
        // The request is rejected, or throttled after many wrong tokens.
        #expect(try await late.exitStatus() != .exited(0), "\(late.log)")
        let argument = try await broker.start("join", string)
        #expect(try await argument.exitStatus() == .exited(64), "\(argument.log)")

        try await expectNothing(of: needles, besides: grant, in: scratch)
        try await broker.restart()
        try await expectNothing(of: needles, besides: grant, in: scratch)
        broker.daemon.terminate()
        _ = try await broker.daemon.exitStatus()
        try await expectNothing(of: needles, besides: grant, in: scratch)
        for program in [broker.daemon, joined, join, late, argument, set, watch] {
            #expect(needles.filter(program.log.contains) == [], "\(program.name)")
        }
        #expect(broker.daemon.log.contains("the API is open"))
    }

    /// Searches every file of the broker, including SQLite's journal.
    private func expectNothing(of needles: [String], besides known: String, in scratch: ScratchFolder) async throws {
        func finds(_ words: [String]) async throws -> Bool {
            try scratch.write(words.joined(separator: "\n"), to: "needles")
            let arguments = ["-r", "-a", "-q", "-F", "-f", scratch.file("needles"), scratch.file("state")]
            return try await Program("grep", arguments, in: scratch).exitStatus() == .exited(0)
        }
        #expect(try await !finds(needles))
        // Proves that the search finds a known string.
        #expect(try await finds([known]))
    }

    @Test func `an aborted broker leaves no core file`() async throws {
        let state = scratch.file("state")
        let daemon = [
            try Executable.built("patchbayd"), "--socket", scratch.file("p.sock"), "--state-directory", state,
        ]
        let commands = [daemon, [try Executable.built("patchbay"), "join", "-"], ["sleep", "60"]]
        var said: [String] = []
        for (number, command) in commands.enumerated() {
            let folder = try scratch.makeFolder("\(number)")
            said += try await Program.run("python3", [Self.script, "core", folder] + command, in: scratch)
        }

        #expect(said.prefix(2) == ["limit 1 core False by 6 files 0", "limit 1 core False by 6 files 0"])
        // If the machine writes no core files, only the limit can be checked.
        #expect(said[2].hasPrefix("limit unlimited ") && said[2].contains(" by 6 "))
    }
}
