import FoundationEssentials
import Glibc
import SystemIO
import TestSupport
import Testing

/// Endpoints and phones of one host, used through the broker of another host.
@Suite(.needs(.etcd, .python), .timeLimit(.minutes(5)), .scratchFolder) struct TeamReachTests {
    private let scratch = ScratchFolder.current
    private static let phone = "00008030-001A2B3C4D5E6F70"

    @Test func `both hosts list the endpoint, and its own host accepts both forms of the ID`() async throws {
        let (team, _) = try await RunningTeam.startWithApp(in: scratch)
        #expect(try await team.lab1.ask("show", "shop.lab2").joined().contains("lab2"))
        for id in ["shop", "shop.lab2"] {
            #expect(try await team.lab2.ask("show", id, "--json").joined().contains(#""id":"shop""#))
        }
        _ = try await team.lab2.ask("call", "shop.lab2", "get_screen")
    }

    @Test func `a call passes through both brokers, and the owning broker records the client with its host`()
        async throws
    {
        let (team, app) = try await RunningTeam.startWithApp(in: scratch)
        #expect(try await !team.lab1.ask("tools", "shop.lab2").isEmpty)
        _ = try await team.lab1.ask("call", "shop.lab2", "get_screen")
        try await app.program.waitForLine("call: get_screen")
        // Calls are written to the audit log within a second.
        let who = #""who":{"client":"user \#(geteuid())","host":"lab1"}"#
        try await team.waitUntil { try await team.lab2.ask("audit", "--json").joined().contains(who) }
    }

    @Test func `a real MCP client uses the endpoint's address at the other broker`() async throws {
        let (team, _) = try await RunningTeam.startWithApp(in: scratch)
        let agent = try await AgentBroker(socket: team.lab1.socket, port: team.apiPorts[0], in: team.scratch)
        let own = try await AgentBroker(socket: team.lab2.socket, port: team.apiPorts[1], in: team.scratch)
        let remote = try await AgentPeer.mcp1.transcripts(
            of: [.init(kind: "app", words: [agent.url(of: "shop.lab2")])],
            grant: agent.grant,
            in: team.scratch
        )
        let local = try await AgentPeer.mcp1.transcripts(
            of: [.init(kind: "app", words: [own.url(of: "shop")])],
            grant: own.grant,
            in: team.scratch
        )
        #expect(remote == local && remote.first?.isEmpty == false)
    }

    @Test func `a large result is downloaded from the own broker, and only by the client that called`() async throws {
        let (team, _) = try await RunningTeam.startWithApp(in: scratch)
        let links = try await team.lab1.ask("call", "shop.lab2", "screenshot", "--max-pixels", "0")
        let link = try #require(links.first { $0.hasPrefix("patchbay://artifact/") })
        let path = "/v1/artifacts/\(link.dropFirst("patchbay://artifact/".count).prefix { $0 != " " })"
        func download(_ broker: RunningBroker, _ words: String...) async throws -> (status: String, bytes: Data) {
            let file = team.scratch.file("artifact")
            let status = try await Program.run(
                "curl",
                ["-sS", "-o", file, "-w", "%{http_code}", "--unix-socket", broker.socket] + words
                    + ["http://localhost\(path)"],
                in: team.scratch
            )
            return (status.joined(), try Data(contentsOf: URL(filePath: file)))
        }

        let (status, bytes) = try await download(team.lab1)
        #expect(status == "200" && bytes.starts(with: [0x89, 0x50, 0x4E, 0x47]))
        let owning = try await download(team.lab2)
        #expect(owning.bytes == bytes)
        let agent = try await AgentBroker(socket: team.lab1.socket, port: team.apiPorts[0], in: team.scratch)
        let other = try await download(team.lab1, "-H", "Authorization: Bearer \(agent.grant)")
        #expect(other.status == "404")
    }

    @Test func `an event stream passes through both brokers, and ends with that of the app's broker`()
        async throws
    {
        let (team, _) = try await RunningTeam.startWithApp(in: scratch)
        let agent = try await AgentBroker(socket: team.lab1.socket, port: team.apiPorts[0], in: team.scratch)
        let words = [
            "-sSN", "-D", "-", "-H", "Authorization: Bearer \(agent.grant)", "-H",
            "Accept: application/json, text/event-stream", agent.url(of: "shop.lab2"),
        ]
        let client = #""capabilities": {}, "clientInfo": {"name": "a", "version": "1"}"#
        let parameters = #"{"protocolVersion": "2025-11-25", \#(client)}"#
        let initialize = #"{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": \#(parameters)}"#
        let head = try await Program.run(
            "curl",
            words + ["-H", "Content-Type: application/json", "-d", initialize],
            in: team.scratch
        )
        let session = try #require(head.first { $0.lowercased().hasPrefix("mcp-session-id:") }, "\(head)")
        let stream = words + ["-H", String(session.filter { $0 != "\r" })]
        let first = try await Program("curl", stream, in: team.scratch)
        try await first.waitForLine("retry:")
        // The broker of the app closes the first stream of a session when a second one begins.
        let second = try await Program("curl", stream, in: team.scratch)
        try await second.waitForLine("retry:")
        #expect(try await first.exitStatus() == .exited(0), "\(first.log)")
        #expect(second.output.contains { $0.lowercased().hasPrefix("content-type: text/event-stream") })
        _ = try await team.lab2.ask("rm", "shop")
        try await second.waitForLine(#"data: {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#)

        // The stream does not delay the stop of the own broker.
        team.lab1.daemon.terminate()
        #expect(try await team.lab1.daemon.exitStatus(within: .seconds(10)) == .exited(0))
        _ = try await second.exitStatus()
    }

    @Test func `forward and stdio reach the endpoint of the other host, with half-close`() async throws {
        let size = 8 << 20
        let app = try PatternServer(sending: size, in: scratch)
        let team = try await RunningTeam(in: scratch)
        _ = try await team.lab2.ask("add", "files", "127.0.0.1:\(app.port)", "--kind", "mcp")
        try await team.waitForEndpoint("files.lab2", at: team.lab1)
        let port = try await team.lab1.forward("tcp:0", "--endpoint", "files.lab2")
        let received = await LoopbackClient.talk(to: port, within: .seconds(60)) { peer in
            [peer.exchange(sending: size, expecting: size, finishes: true).received, peer.receive()]
        }
        #expect(received == [PatternPeer.Received(count: size), PatternPeer.Received(end: .closed)])
        let echo = try EchoServer(in: scratch)
        _ = try await team.lab2.ask("add", "echo", "127.0.0.1:\(echo.port)", "--kind", "mcp")
        try await team.waitForEndpoint("echo.lab2", at: team.lab1)
        let stdio = try await team.lab1.start(["stdio", "echo.lab2"], input: .pipe)
        try stdio.write("hello\n")
        try await stdio.waitForLine("hello")
    }

    @Test(.needs(.usbmuxd)) func `a port of a phone at the other host is reached, and the unplugged phone resets it`()
        async throws
    {
        let rig = try await UsbmuxdFixture([Self.phone], in: scratch)
        let app = try EchoServer(in: scratch)
        let team = try await RunningTeam(in: scratch, phones: rig)
        try await team.waitUntil { try await team.lab1.ask("devices").joined().contains(Self.phone) }
        let port = try FreePorts.take()[0]
        let iproxy = try await team.lab1.start("iproxy", "\(port):\(app.port)", "-u", Self.phone)
        try await iproxy.waitForLine("waiting for connection")
        let client = try await SocketStream.connect(to: .ipv4(INADDR_LOOPBACK, port: port))
        try await client.send([1])
        #expect(try await client.receive(1) == [1])

        try await rig.detach(Self.phone)

        await #expect(throws: SocketStream.Failure(code: ECONNRESET)) { try await client.receiveSome() }
    }

    @Test func `an owner's command for an endpoint of another host names that host`() async throws {
        let (team, _) = try await RunningTeam.startWithApp(in: scratch)
        for words in [["approve", "shop.lab2"], ["rm", "shop.lab2"]] {
            let command = try await team.lab1.start(words)
            #expect(try await command.exitStatus() != .exited(0))
            #expect(command.log.contains("belongs to the host lab2"), "\(command.log)")
        }
    }

    @Test func `a call to a host whose broker stopped fails with the host's name, and works after its start`()
        async throws
    {
        let (team, _) = try await RunningTeam.startWithApp(in: scratch)
        _ = try await team.lab1.ask("call", "shop.lab2", "get_screen")
        try await team.lab2.restart()
        try await team.waitForEndpoint("shop.lab2", at: team.lab1)
        _ = try await team.lab1.ask("call", "shop.lab2", "get_screen")
        team.lab2.daemon.terminate()
        _ = try await team.lab2.daemon.exitStatus()
        // The endpoint disappears from the list just before its host.
        try await team.waitUntil {
            try await team.lab1.refused("call", "shop.lab2", "get_screen").contains("the host lab2")
        }
    }
}
