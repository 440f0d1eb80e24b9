import FoundationEssentials
import Glibc
import Model
import TestSupport
import Testing

/// Joining a broker on another machine, on a network without multicast.
@Suite(.needs(.root, .namespaces, .python, .openssl), .timeLimit(.minutes(2)), .scratchFolder) struct JoinTests {
    private let scratch = ScratchFolder.current

    @Test func `a machine joins, lists, calls tools, serves an agent, and leaves`() async throws {
        let machines = try await RemoteMachines(in: scratch)
        try await machines.addShop()
        let string = try await machines.pair("--remote")
        #expect(string.hasPrefix("PATCHBAY:1:\(RemoteMachines.brokerHost):\(RemoteMachines.port):"))
        let join = try await machines.join(string, "--as", "lab")
        #expect(try await join.exitStatus() == .exited(0), "\(join.log)")

        #expect(try await machines.ask("list", "--broker", "lab", "--quiet") == ["shop"])
        #expect(try await machines.ask("show", "shop", "--broker", "lab").contains { $0.contains("127.0.0.1") })
        #expect(try await machines.ask("tools", "shop", "--broker", "lab").contains { $0.hasPrefix("tap_element") })
        let answer = try await machines.ask("call", "shop", "tap_element", "element_id=5", "--broker", "lab")
        #expect(answer.joined().contains(#""tapped": "5""#))

        // The port opens on the machine that joined.
        let forward = try await machines.start("forward", "--endpoint", "shop", "tcp:0", "--broker", "lab")
        let address = try #require(try await forward.waitForLine(" -> ").split(separator: " ").first)
        let health = try await machines.client.run("curl", ["-sS", "--max-time", "5", "http://\(address)/health"])
        #expect(health.joined().contains("\"status\""), "\(health)")

        let brokers = try await machines.ask("brokers")
        #expect(brokers.contains { $0.hasPrefix("lab") && $0.hasSuffix("reachable") }, "\(brokers)")
        #expect(try await machines.owner("grants").contains { $0.contains(", remote") })
        #expect(try await machines.owner("invites", "--all").contains { $0.contains("remote") })

        let agent = try await machines.start("mcp", environment: ["PATCHBAY_BROKER": "lab"], input: .pipe)
        try agent.write(#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","#)
        try agent.write(#""capabilities":{},"clientInfo":{"name":"test","version":"1"}}}"# + "\n")
        try await agent.waitForLine(#""id":1,"#)
        try agent.write(#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"# + "\n")
        try await agent.waitForLine("endpoint_call")

        let left = try await machines.ask("leave", "lab")
        #expect(left.first?.contains("has ended") == true, "\(left)")
        #expect(try await machines.owner("grants", "--quiet") == [])
        let list = try await machines.start("list", "--broker", "lab")
        #expect(try await list.exitStatus() == .exited(66), "\(list.log)")
        let folder = machines.scratch.file("client/.local/state/patchbay/brokers")
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder) == [])
    }

    @Test func `a man in the middle gets neither the invite nor a connection`() async throws {
        let machines = try await RemoteMachines(in: scratch)
        let scratch = machines.scratch
        let (key, certificate) = (scratch.file("key.pem"), scratch.file("certificate.pem"))
        let parameters = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-keyout", key, "-out", certificate]
        try await Program.run("openssl", ["req", "-x509", "-nodes", "-subj", "/CN=patchbay"] + parameters, in: scratch)
        let attacker = try await Program(
            "openssl",
            ["s_server", "-accept", "\(RemoteMachines.port)", "-cert", certificate, "-key", key],
            in: scratch,
            input: .pipe,
            namespace: machines.client
        )
        try await attacker.waitForLine("ACCEPT")
        let string = try await machines.pair("--remote", "--host", RemoteMachines.clientHost)

        let join = try await machines.join(string)

        #expect(try await join.exitStatus() == .exited(77), "\(join.log)")
        #expect(join.log.contains("has another key than the pairing string"), "\(join.log)")
        #expect(!attacker.log.contains("pbi_") && !attacker.log.contains("POST"), "\(attacker.log)")
        let invites = try await machines.owner("invites", "--json").joined()
        #expect(invites.contains("\"useCount\" : 0") || invites.contains("\"useCount\":0"), "\(invites)")
        // The same invite is still valid at the broker itself.
        let right = string.replacing(RemoteMachines.clientHost, with: RemoteMachines.brokerHost)
        let second = try await machines.join(right)
        #expect(try await second.exitStatus() == .exited(0), "\(second.log)")
        #expect(try await machines.ask("brokers", "--quiet") == ["10-99-0-1"])
    }

    @Test func `64 clients with one invite, half of them on another machine, get one grant`() async throws {
        let machines = try await RemoteMachines(in: scratch)
        let string = try await machines.pair("--remote")
        let invite = try PairingString(string).invite
        var clients: [Program] = []
        for number in 0..<64 {
            let home = ["HOME": machines.scratch.file("home\(number)")]
            if number.isMultiple(of: 2) {
                clients.append(try await machines.join(string, environment: home))
            } else {
                let join = try await machines.startAsOwner("join", "-", environment: home, input: .pipe)
                try join.write(invite + "\n")
                clients.append(join)
            }
        }
        var joined = 0
        for client in clients where try await client.exitStatus(within: .seconds(60)) == .exited(0) { joined += 1 }

        #expect(joined == 1)
        #expect(try await machines.owner("grants", "--quiet").count == 1)
    }

    @Test func `a revocation ends the commands of the other machine at once`() async throws {
        let machines = try await RemoteMachines(in: scratch)
        let join = try await machines.join(try await machines.pair("--remote"), "--as", "lab")
        #expect(try await join.exitStatus() == .exited(0), "\(join.log)")
        let watch = try await machines.start("watch", "--broker", "lab")
        try await watch.waitForLine("no endpoints; waiting")
        let grant = try #require(try await machines.owner("grants", "--quiet").first)

        try await machines.owner("revoke", grant)

        #expect(try await watch.exitStatus() == .exited(77), "\(watch.log)")
        #expect(watch.log.contains("no valid grant is bound to the key of this client"), "\(watch.log)")
        #expect(try await machines.ask("brokers").contains { $0.hasSuffix("grant-ended") })
    }

    @Test func `two commands that join under one name at once give one broker, and keep the other invite`() async throws
    {
        let machines = try await RemoteMachines(in: scratch)
        let strings = [try await machines.pair("--remote"), try await machines.pair("--remote")]
        var joins: [Program] = []
        for _ in strings { joins.append(try await machines.start("join", "-", "--as", "lab", input: .pipe)) }
        for join in joins {
            try await eventually("the command reads its input") { Self.readsStandardInput(join.processID) }
        }

        for (join, string) in zip(joins, strings) { try join.write(string + "\n") }

        let statuses = try await [joins[0].exitStatus(), joins[1].exitStatus()]
        #expect(statuses.contains(.exited(0)) && statuses.contains(.exited(64)), "\(statuses)")
        #expect(joins.contains { $0.log.contains("the name lab exists") })
        #expect(try await machines.owner("grants", "--quiet").count == 1)
        #expect(try await machines.owner("invites", "--quiet").count == 1)
    }

    /// Returns whether a thread of the process is in read(2), which has number 0 on x86-64 and 63 on arm64, of input 0.
    private static func readsStandardInput(_ process: pid_t) -> Bool {
        let folder = "/proc/\(process)/task"
        let threads = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
        return threads.contains { thread in
            let call = try? String(contentsOfFile: "\(folder)/\(thread)/syscall", encoding: .utf8)
            return call?.hasPrefix("0 0x0 ") == true || call?.hasPrefix("63 0x0 ") == true
        }
    }

    @Test func `a used invite tells its grant to the client that has the right secret`() async throws {
        let machines = try await RemoteMachines(in: scratch)
        let string = try await machines.pair("--remote")
        let first = try await machines.join(string, "--as", "lab")
        #expect(try await first.exitStatus() == .exited(0), "\(first.log)")
        let grant = try #require(try await machines.owner("grants", "--quiet").first)

        let second = try await machines.join(string, "--as", "lab2")

        #expect(try await second.exitStatus() == .exited(77), "\(second.log)")
        #expect(second.log.contains("was used by the grant \(grant) at "), "\(second.log)")
        #expect(second.log.contains("ask for a new one: patchbay pair"), "\(second.log)")
    }

    @Test func `a bearer grant works with curl and with an MCP client from PyPI`() async throws {
        let machines = try await RemoteMachines(in: scratch)
        try await machines.addShop()
        let pairing = try PairingString(try await machines.pair("--bearer"))
        let pin = try #require(pairing.pin)
        let join = try await machines.join(pairing.description, "--print")
        #expect(try await join.exitStatus() == .exited(0), "\(join.log)")
        let token = try #require(join.output.first)

        let url = "https://\(RemoteMachines.brokerHost):\(RemoteMachines.port)/v1/endpoints"
        let base64 = Data(pin.bytes).base64EncodedString()
        let curl = ["-sSk", "--max-time", "8", "--pinnedpubkey", "sha256//\(base64)", "-w", "\n%{http_code}\n", url]
        let listed = try await machines.client.run("curl", curl + ["-H", "Authorization: Bearer \(token)"])
        #expect(listed.last == "200" && listed.joined().contains("shop"), "\(listed)")
        #expect(try await machines.client.run("curl", curl).last == "401")

        let peer = try await Program.run(
            AgentPeer.Library.mcp1.interpreter(in: machines.scratch),
            [
                String(#filePath.dropLast("JoinTests.swift".count)) + "remote_peer.py", RemoteMachines.brokerHost,
                "\(RemoteMachines.port)", "\(pin)",
            ],
            in: machines.scratch,
            environment: ["PATCHBAY_GRANT": token, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONWARNINGS": "ignore"],
            namespace: machines.client
        )
        #expect(peer.first == "tools 6")
        #expect(peer.last?.hasPrefix("call ok") == true, "\(peer)")
    }

    @Test func `a remote invite is not spent by a client without a key`() async throws {
        let machines = try await RemoteMachines(in: scratch)
        let pairing = try PairingString(try await machines.pair("--remote"))
        let prints = try await machines.join(pairing.description, "--print")
        #expect(try await prints.exitStatus() == .exited(77), "\(prints.log)")
        #expect(prints.log.contains("patchbay pair --bearer"), "\(prints.log)")

        let join = try await machines.join(pairing.description)
        #expect(try await join.exitStatus() == .exited(0), "\(join.log)")
    }

    @Test(arguments: [("10.99.0.9", "is unreachable"), ("nowhere.invalid", "the name is unknown")])
    func `a broker that cannot be reached is not joined`(host: String, message: String) async throws {
        let machines = try await RemoteMachines(in: scratch)
        let join = try await machines.join(try await machines.pair("--remote", "--host", host))

        #expect(try await join.exitStatus(within: .seconds(60)) == .exited(69), "\(join.log)")
        #expect(join.log.contains(message) && join.log.contains("try: "), "\(join.log)")
        #expect(try await machines.ask("brokers", "--quiet") == [])
    }

    @Test func `without the remote listener, no invite for another machine is created`() async throws {
        let machines = try await RemoteMachines(in: scratch, isRemoteOn: false)
        for use in ["--remote", "--bearer", "--device"] {
            let pair = try await machines.startAsOwner("pair", use, "--detach")
            #expect(try await pair.exitStatus() != .exited(0))
            #expect(pair.log.contains("try: patchbay remote on"), "\(pair.log)")
        }
        #expect(try await machines.owner("invites", "--all", "--quiet") == [])
    }

    @Test func `a client that is away from the broker can leave, and says that the grant lives on`() async throws {
        let machines = try await RemoteMachines(in: scratch)
        let join = try await machines.join(try await machines.pair("--remote"), "--as", "lab")
        #expect(try await join.exitStatus() == .exited(0), "\(join.log)")
        try await machines.owner("remote", "off")

        let brokers = try await machines.ask("brokers")
        #expect(brokers.contains { $0.hasPrefix("lab") && $0.hasSuffix("unreachable") }, "\(brokers)")
        let list = try await machines.start("list", "--broker", "lab")
        #expect(try await list.exitStatus() == .exited(69), "\(list.log)")
        let left = try await machines.ask("leave", "lab")

        #expect(left.first?.contains("no broker listens at 10.99.0.1:7283") == true, "\(left)")
        #expect(try await machines.owner("grants", "--quiet").count == 1)
        #expect(try await machines.ask("brokers", "--quiet") == [])
    }
}
