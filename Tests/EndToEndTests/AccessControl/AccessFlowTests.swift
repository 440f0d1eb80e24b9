import FoundationEssentials
import Glibc
import TestSupport
import Testing

/// Granting and revoking access with the commands of `patchbay`.
@Suite(.needs(.python), .scratchFolder) struct AccessFlowTests {
    private let scratch = ScratchFolder.current
    private static let script = String(#filePath.dropLast("AccessFlowTests.swift".count)) + "api_client.py"

    /// The file that `patchbay join` writes.
    private struct Kept: Decodable {
        struct Grant: Decodable { let id: String }

        let grant: Grant
        let token: String
    }

    private func startBroker() async throws -> (RunningBroker, port: String) {
        let port = try FreePorts.take()[0]
        let broker = try await RunningBroker(in: scratch, configuration: "[api]\nport = \(port)\n")
        return (broker, "\(port)")
    }

    private func start(_ arguments: String..., in scratch: ScratchFolder) async throws -> Program {
        try await Program("python3", [Self.script] + arguments, in: scratch, input: .pipe)
    }

    @Test func `a pairing string is redeemed once, its grant is valid until revoked, and the audit log has both`()
        async throws
    {
        let (broker, port) = try await startBroker()
        let pair = try await broker.start("pair", "--scope", "registry.read")
        let string = try await pair.waitForLine("PATCHBAY:1:127.0.0.1:\(port)::pbi_")

        let join = try await broker.start("join", "-", "--name", "agent", input: .pipe)
        try join.write(string + "\n")
        #expect(try await join.exitStatus() == .exited(0), "\(join.log)")
        #expect(try await pair.exitStatus() == .exited(0), "\(pair.log)")

        let kept = try self.kept(by: join)
        #expect(join.output.first?.hasPrefix("Joined: \"agent\" may registry.read on all, expires in ") == true)
        #expect(pair.log.contains("Joined: \"agent\"") && pair.log.contains("Closed."), "\(pair.log)")
        #expect(!join.log.contains(kept.token) && !join.log.contains("pbi_"))
        let grants = try await broker.ask("grants")
        #expect(grants.count == 2 && grants[1].hasPrefix("\(kept.grant.id)  agent  valid"), "\(grants)")

        let holder = try await start("show", port, in: scratch)
        try holder.write(kept.token + "\n")
        try await holder.waitForLine("200")
        #expect(try await broker.ask("revoke", kept.grant.id) == ["Revoked \(kept.grant.id)."])
        try holder.write(kept.token + "\n")
        try await holder.waitForLine("401")
        #expect(try await broker.ask("grants").first?.hasPrefix("No valid grants.") == true)

        let second = try await broker.start("join", "-", input: .pipe)
        try second.write(string + "\n")
        #expect(try await second.exitStatus() == .exited(77), "\(second.log)")
        let log = try await broker.ask("audit").map { $0.split(separator: "  ").dropFirst(2).first }
        #expect(log == ["invited", "redeemed", "revoked", "refused", "refused"])
        #expect(!broker.daemon.log.contains("pbi_") && !broker.daemon.log.contains("pbg_"))
    }

    @Test func `join redeems an invite at the broker named on the command line`() async throws {
        let (broker, port) = try await startBroker()
        let pair = try await broker.start("pair", "--scope", "registry.read")
        let string = try await pair.waitForLine("PATCHBAY:1:127.0.0.1:\(port)::pbi_")
        let unused = try FreePorts.take()[0]

        let wrong = try await broker.start("join", "-", "--broker", "127.0.0.1:\(unused)", input: .pipe)
        try wrong.write(string + "\n")
        #expect(try await wrong.exitStatus() != .exited(0))
        #expect(wrong.log.contains("127.0.0.1:\(unused)"), "\(wrong.log)")

        let right = try await broker.start("join", "-", "--broker", "127.0.0.1:\(port)", input: .pipe)
        try right.write(string.replacing(":\(port):", with: ":\(unused):") + "\n")
        #expect(try await right.exitStatus() == .exited(0), "\(right.log)")
        #expect(try await broker.ask("list", "--broker", "127.0.0.1:\(port)").isEmpty == false)
        #expect(try await pair.exitStatus() == .exited(0))
    }

    @Test(arguments: [["tunnel.open"], ["tunnel.open", "registry.read"]])
    func `stdio connects to endpoints of the grant and is denied others`(scopes: [String]) async throws {
        let (broker, port) = try await startBroker()
        let app = try await SampleApp(in: scratch)
        _ = try await broker.ask("add", "Lab", "127.0.0.1:\(app.port)")
        _ = try await broker.ask("add", "Other", "127.0.0.1:\(app.port)")
        let pair = try await broker.start(["pair", "--endpoint", "lab"] + scopes.flatMap { ["--scope", $0] })
        let string = try await pair.waitForLine("PATCHBAY:1:127.0.0.1:\(port)::pbi_")
        let join = try await broker.start("join", "-", input: .pipe)
        try join.write(string + "\n")
        #expect(try await join.exitStatus() == .exited(0), "\(join.log)")

        let stdio = try await broker.start("stdio", "lab", "--broker", "127.0.0.1:\(port)", input: .pipe)
        try stdio.write("GET /health HTTP/1.0\r\n\r\n")
        stdio.closeInput()
        try await stdio.waitForLine("\"status\"")
        #expect(try await stdio.exitStatus() == .exited(0), "\(stdio.log)")

        let other = try await broker.start("stdio", "other", "--broker", "127.0.0.1:\(port)", input: .pipe)
        #expect(try await other.exitStatus() != .exited(0))
        #expect(app.program.output.count { $0.hasPrefix("request: ") } == 1)
    }

    @Test func `a local program requests access and gets the decision made for its code`() async throws {
        let (broker, _) = try await startBroker()
        let (first, code) = try await beg(broker, scratch)
        let listed = try await broker.ask("requests")
        #expect(listed.count == 3 && listed[1].hasPrefix(code) && listed[1].contains("\"agent\""), "\(listed)")

        #expect(try await broker.ask("requests", "approve", code).joined().contains("\"agent\""))
        try first.write("\n")
        try await first.waitForLine("granted 200")
        #expect(try await broker.ask("grants").last?.contains("  user \(geteuid())  ") == true)

        let (second, otherCode) = try await beg(broker, scratch)
        let denied = try await broker.ask("requests", "deny", otherCode.lowercased()).first
        #expect(denied?.hasPrefix("Denied \(otherCode)") == true)
        try second.write("\n")
        try await second.waitForLine("denied and nothing")
        #expect(try await broker.ask("requests") == ["No pending access requests."])
    }

    @Test func `a secret is read from standard input and is not stored in plain text`() async throws {
        let (broker, _) = try await startBroker()
        let secret = String(repeating: "5ec2e7", count: 10)
        _ = try await broker.ask("add", "Lab", "127.0.0.1:9")

        let set = try await broker.start("secret", "set", "lab", input: .pipe)
        try set.write("http://127.0.0.1:9/?appreveal_session_token=\(secret)\n")

        #expect(try await set.exitStatus() == .exited(0), "\(set.log)")
        #expect(set.output == ["Stored the secret of lab. It was not tried at the app."])
        let state = "\(scratch.path)/state"
        for name in try FileManager.default.contentsOfDirectory(atPath: state) {
            let bytes = try Data(contentsOf: URL(filePath: "\(state)/\(name)"))
            #expect(bytes.firstRange(of: Data(secret.utf8)) == nil, "it is in \(name)")
        }
        #expect(try await broker.ask("audit", "--last", "1").first?.contains("  secret-set  lab  ") == true)
        #expect(!broker.daemon.log.contains(secret))
    }

    @Test func `the command that confirms the clock is recorded in the audit log`() async throws {
        let (broker, _) = try await startBroker()
        let said = try await broker.ask("doctor", "--fix-clock")

        let log = try await broker.ask("audit", "--last", "1")
        #expect(said == ["The broker uses the system clock again. No grant or invite ended."])
        #expect(log.first?.contains("  clock-recovered") == true, "\(log)")
    }

    @Test func `the audit log is valid until a byte of it is changed`() async throws {
        let (broker, _) = try await startBroker()
        _ = try await broker.ask("pair", "--detach")
        _ = try await broker.ask("revoke", "--all")
        #expect(try await broker.ask("audit", "--verify") == ["The audit log is valid: 2 entries."])

        let file = URL(filePath: "\(scratch.path)/state/audit.jsonl")
        let text = try String(contentsOf: file, encoding: .utf8)
        try Data(text.replacing("\"invited\"", with: "\"refused\"").utf8).write(to: file)

        let check = try await broker.start("audit", "--verify")
        #expect(try await check.exitStatus() == .exited(1))
        #expect(check.log.contains("entry 2 of the audit log is invalid"), "\(check.log)")
    }

    @Test func `an empty audit log is reported as empty`() async throws {
        let (broker, _) = try await startBroker()
        let empty = try await broker.ask("audit")

        #expect(empty == ["The audit log is empty."])
    }

    @Test func `Ctrl-C without a broker says that the invite stays open and how to revoke it`() async throws {
        let (broker, _) = try await startBroker()
        let pair = try await broker.start("pair")
        try await pair.waitForLine(" is open for ")
        broker.daemon.terminate()
        _ = try await broker.daemon.exitStatus()

        pair.send(SIGINT)

        #expect(try await pair.exitStatus() == .exited(69), "\(pair.log)")
        let said = try #require(pair.log.firstRange(of: "patchbay revoke ")).upperBound
        let id = String(pair.log[said...].prefix { $0 != "," })
        #expect(pair.log.contains("invite \(id) stays open for 10 min"), "\(pair.log)")
        try await broker.restart()
        #expect(try await broker.ask("revoke", id) == ["Revoked \(id)."])
    }

    @Test func `commands and agents with a broker's address use the grant stored by join`()
        async throws
    {
        let (broker, port) = try await startBroker()
        let pair = try await broker.start("pair", "--scope", "registry.read")
        let string = try await pair.waitForLine("PATCHBAY:1:127.0.0.1:\(port)::pbi_")
        let none = try await broker.start("list", "--broker", "127.0.0.1:\(port)")
        #expect(try await none.exitStatus() == .exited(77), "\(none.log)")
        #expect(none.log.contains("try: patchbay join -"), "\(none.log)")
        let join = try await broker.start("join", "-", input: .pipe)
        try join.write(string + "\n")
        #expect(try await join.exitStatus() == .exited(0), "\(join.log)")
        #expect(join.log.contains("patchbay list --broker 127.0.0.1:\(port)"), "\(join.log)")
        let kept = try self.kept(by: join)

        let list = try await broker.ask("list", "--broker", "http://localhost:\(port)/")
        #expect(list.first?.hasPrefix("No endpoints.") == true, "\(list)")
        let audit = try await broker.start("audit", "--broker", "127.0.0.1:\(port)")
        #expect(try await audit.exitStatus() == .exited(77))
        #expect(try await broker.ask("audit", "--last", "1").first?.contains("redeemed") == true)
        let agent = try await broker.start("mcp", "--broker", "127.0.0.1:\(port)", input: .pipe)
        let call = #"{"name":"endpoint_list","arguments":{}}"#
        try agent.write(#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":\#(call)}"# + "\n")
        #expect(try await agent.waitForLine(#"{"jsonrpc""#).contains("none: start a debug build"))

        _ = try await broker.ask("revoke", kept.grant.id)
        try agent.write(#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":\#(call)}"# + "\n")
        #expect(try await agent.waitForLine(#"{"jsonrpc":"2.0","id":2"#).contains("patchbay join -"))
        let late = try await broker.start("list", "--broker", "127.0.0.1:\(port)")
        #expect(try await late.exitStatus() == .exited(77), "\(late.log)")
        #expect(!late.log.contains(kept.token))

        // A running agent uses the file that is written later.
        let again = try await broker.ask("pair", "--scope", "registry.read", "--detach")
        let second = try await broker.start("join", "-", input: .pipe)
        try second.write(try #require(again.first { $0.hasPrefix("PATCHBAY:") }) + "\n")
        #expect(try await second.exitStatus() == .exited(0), "\(second.log)")
        try agent.write(#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":\#(call)}"# + "\n")
        #expect(try await agent.waitForLine(#"{"jsonrpc":"2.0","id":3"#).contains("none: start a debug build"))
        agent.closeInput()
        #expect(try await agent.exitStatus() == .exited(0))
    }

    @Test func `doctor accepts a socket that the configuration opens to all users`() async throws {
        let configuration = "[api]\ntcp = false\nallow_any_user = true\n"
        let broker = try await RunningBroker(in: scratch, configuration: configuration)

        let doctor = try await broker.start("doctor")
        _ = try await doctor.exitStatus()

        let line = doctor.output.first { $0.contains("  socket ") }
        #expect(line?.hasPrefix("ok ") == true && line?.contains("0666") == true, "\(doctor.log)")
    }

    @Test func `Ctrl-C revokes the invite, and later join attempts fail`() async throws {
        let (broker, _) = try await startBroker()
        let pair = try await broker.start("pair")
        let string = try await pair.waitForLine("PATCHBAY:1:")
        try await pair.waitForLine(" is open for ")

        pair.send(SIGINT)

        #expect(try await pair.exitStatus() == .exited(130))
        #expect(pair.output.last == "Closed: the invite is revoked.")
        #expect(!pair.log.contains("error"), "\(pair.log)")
        #expect(try await broker.ask("invites").first?.hasPrefix("No open invites.") == true)
        let late = try await broker.start("join", "-", input: .pipe)
        try late.write(string + "\n")
        #expect(try await late.exitStatus() == .exited(77), "\(late.log)")
    }

    /// Reads the file that `join` names; only its user can open the file.
    private func kept(by join: Program) throws -> Kept {
        let line = try #require(join.output.first { $0.hasPrefix("The grant is stored in ") })
        let path = try #require(line.split(separator: " ").dropFirst(5).first).dropLast()
        var facts = stat()
        let isThere = stat(String(path), &facts) == 0
        #expect(isThere && facts.st_mode & 0o777 == 0o600)
        return try JSONDecoder().decode(Kept.self, from: Data(contentsOf: URL(filePath: String(path))))
    }

    private func beg(_ broker: RunningBroker, _ scratch: ScratchFolder) async throws -> (Program, code: String) {
        let program = try await start("beg", broker.socket, in: scratch)
        return (program, try await program.waitForLine("-"))
    }
}
