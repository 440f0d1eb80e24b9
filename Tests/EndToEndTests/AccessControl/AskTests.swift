import FoundationEssentials
import Glibc
import TestSupport
import Testing

/// `patchbay ask` of a user without a grant, and the answers of an owner.
@Suite(.needs(.root), .scratchFolder) struct AskTests {
    private let scratch = ScratchFolder.current
    private static let user = "65534"

    /// Runs the body with a broker that every user may connect to.
    private func startBroker() async throws -> RunningBroker {
        chmod(scratch.path, 0o711)
        let home = try scratch.makeFolder("home")
        try await Program.run("chown", [Self.user, home], in: scratch)
        let broker = try await RunningBroker(in: scratch, configuration: "[api]\ntcp = false\nallow_any_user = true\n")
        return broker
    }

    private func start(_ words: [String], _ broker: RunningBroker, _ scratch: ScratchFolder) async throws -> Program {
        try await Program(
            "setpriv",
            ["--reuid=\(Self.user)", "--regid=\(Self.user)", "--clear-groups", try Executable.built("patchbay")]
                + words,
            in: scratch,
            environment: [
                "PATCHBAY_SOCKET": broker.socket, "HOME": scratch.file("home"), "XDG_STATE_HOME": scratch.file("home"),
            ]
        )
    }

    private func code(_ ask: Program) async throws -> String {
        let line = try await ask.waitForLine("An owner allows it with:")
        return try #require(line.split(separator: " ").last).description
    }

    @Test func `a user without a grant asks, an owner sees the request and allows it, and the grant works`()
        async throws
    {
        let broker = try await startBroker()
        let before = try await start(["list"], broker, scratch)
        #expect(try await before.exitStatus() == .exited(77))
        #expect(before.log.contains("try: patchbay ask"), "\(before.log)")

        let ask = try await start(["ask", "--scope", "registry.read", "--name", "agent"], broker, scratch)
        let code = try await code(ask)
        for command in ["status", "grants", "requests"] {
            #expect(try await broker.ask(command).joined(separator: "\n").contains(code), "\(command)")
        }
        #expect(
            try await broker.ask("grants").contains { $0.contains("\"agent\"") && $0.contains("registry.read on all") }
        )
        _ = try await broker.ask("requests", "approve", code)

        #expect(try await ask.exitStatus(within: .seconds(30)) == .exited(0), "\(ask.log)")
        #expect(ask.output.contains { $0.hasPrefix("Allowed: \"agent\" may registry.read on all") }, "\(ask.log)")
        let after = try await start(["list", "--broker", broker.socket], broker, scratch)
        #expect(try await after.exitStatus() == .exited(0), "\(after.log)")
        #expect(!ask.log.contains("pbg_") && !ask.log.contains("pbi_"))
    }

    @Test func `a denied request ends with 77, and a text that is no endpoint ID is refused`() async throws {
        let broker = try await startBroker()
        let ask = try await start(["ask"], broker, scratch)
        _ = try await broker.ask("requests", "deny", try await code(ask))
        #expect(try await ask.exitStatus(within: .seconds(30)) == .exited(77))
        #expect(ask.log.contains("an owner denied the request"), "\(ask.log)")

        let mistyped = try await start(["ask", "--endpoint", "Shop App"], broker, scratch)
        #expect(try await mistyped.exitStatus() == .exited(64), "\(mistyped.log)")
    }

    @Test func `an owner needs no grant, and other machines cannot be asked`() async throws {
        let broker = try await startBroker()
        let owner = try await broker.start("ask")
        #expect(try await owner.exitStatus() == .exited(64))
        #expect(owner.log.contains("owners need no grant"), "\(owner.log)")
        let remote = try await broker.start("ask", "--broker", "ssh://anna@lab")
        #expect(try await remote.exitStatus() == .exited(64))
        #expect(remote.log.contains("only over the socket"), "\(remote.log)")
    }
}
