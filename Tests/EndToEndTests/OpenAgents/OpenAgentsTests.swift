import Glibc
import Model
import TestSupport
import Testing

/// OpenAgents servers behind the real broker.
@Suite(.needs(.python), .timeLimit(.minutes(3)), .scratchFolder) struct OpenAgentsTests {
    private let scratch = ScratchFolder.current

    /// Returns the reason for which a probe of a configured server fails; empty if it does not fail.
    private static func refusal(of port: UInt16, named name: String, by broker: RunningBroker) async throws -> String {
        _ = try await broker.ask("add", name, "127.0.0.1:\(port)", "--kind", "openagents")
        let probe = try await broker.start("show", name, "--probe")
        return try await probe.exitStatus(within: .seconds(20)) == .exited(0) ? "" : probe.log
    }

    @Test func `a server is identified with one masked initialize request and a closing handshake`() async throws {
        let server = try await OpenAgentsServer(in: scratch)
        let broker = try await RunningBroker(in: scratch)
        let list = try await LiveList(of: broker)

        _ = try await broker.ask("add", "desk", "127.0.0.1:\(server.port)", "--kind", "openagents")

        let row = try await list.first("the server is identified") { $0.server?.text == "openagents-mac" }
        #expect(row.endpoint.version?.text == "0.1.0")
        // The library rejects frames without a mask, with wrong lengths, and close frames with a wrong code.
        try await server.program.waitForLine("closed: 1000")
        #expect(
            server.messages == [
                #"{"jsonrpc":"2.0","id":"1","method":"initialize","params":{"protocol_version":"0.2.2","#
                    + #""client_capabilities":{},"client_info":{"name":"patchbay","version":"\#(Version.text)"}}}"#
            ]
        )
        let heads = server.program.output.filter { $0.hasPrefix("head: ") }.map { $0.lowercased() }
        #expect(heads.contains("head: host: 127.0.0.1:\(server.port)"))
        #expect(heads.contains("head: sec-websocket-version: 13"))
        #expect(!heads.contains { $0.contains("extensions") || $0.contains("origin") || $0.contains("protocol") })
        #expect(server.program.output.contains("path: /"))
    }

    @Test func `fragments, pings, notifications and a slow answer are accepted`() async throws {
        let broker = try await RunningBroker(in: scratch)
        for mode in ["parts", "slow"] {
            let server = try await OpenAgentsServer(mode, in: scratch)
            #expect(try await Self.refusal(of: server.port, named: mode, by: broker) == "")
            if mode == "parts" { try await server.program.waitForLine("ponged") }
        }
    }

    @Test func `every wrong answer is rejected with its reason`() async throws {
        let broker = try await RunningBroker(in: scratch)
        for (mode, reason) in [
            ("error", "it refused initialize: go away"), ("number", "its answer has another id"),
            ("camel", "its answer has no protocol_version"), ("version", "it speaks protocol version 1.0"),
            ("hello", "is not a JSON-RPC 2.0 object"), ("binary", "is not a text message"),
            ("big", "is not an OpenAgents server"), ("close", "it closed the connection before its answer"),
            ("silent", "did not answer initialize within 5.0 seconds"),
        ] {
            let server = try await OpenAgentsServer(mode, in: scratch)
            let refusal = try await Self.refusal(of: server.port, named: mode, by: broker)
            #expect(refusal.contains(reason), "\(mode): \(refusal)")
        }
        #expect(try await broker.endpoints().allSatisfy { $0.server == nil })
    }

    @Test func `a server that does not complete the WebSocket handshake is rejected`() async throws {
        let broker = try await RunningBroker(in: scratch)
        let head = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        for (name, response) in [
            ("no-accept", head + "\r\n"),
            ("wrong-accept", head + "Sec-WebSocket-Accept: AAAAAAAAAAAAAAAAAAAAAAAAAAA=\r\n\r\n"),
            ("not-found", "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"),
            ("no-http", "hello\r\n\r\n"),
        ] {
            let server = try LoopbackServer(in: scratch) { connection in
                var buffer = [UInt8](repeating: 0, count: 4_096)
                guard recv(connection, &buffer, buffer.count, 0) > 0 else { return }
                _ = response.withCString { send(connection, $0, strlen($0), CInt(MSG_NOSIGNAL)) }
                _ = recv(connection, &buffer, buffer.count, 0)
            }
            let refusal = try await Self.refusal(of: server.port, named: name, by: broker)
            #expect(refusal.contains("is not an OpenAgents server"), "\(name): \(refusal)")
        }
    }

    @Test func `a tunnel needs the scope shell, and then carries the client's WebSocket`() async throws {
        let server = try await OpenAgentsServer(in: scratch)
        let api = try FreePorts.take()[0]
        let broker = try await RunningBroker(in: scratch, configuration: "[api]\nport = \(api)\n")
        _ = try await broker.ask("add", "desk", "127.0.0.1:\(server.port)", "--kind", "openagents")
        let spec = #"{"local":"tcp:0","target":{"endpoint":"desk"},"noRebind":true,"persistent":false}"#

        let agent = try await GrantClient(["registry.read", "tunnel.open"], of: broker, port: api, in: scratch)
        let refused = try await agent.post("/v1/tunnels", spec)
        #expect(refused.status == 403 && refused.body.contains("needs the scope shell"), "\(refused.body)")
        let ephemeral = try await agent.post("/v1/tunnels/ephemeral", "[\(spec)]")
        #expect(ephemeral.status == 403, "\(ephemeral.body)")
        let shell = try await GrantClient(
            ["registry.read", "tunnel.open", "shell"],
            of: broker,
            port: api,
            in: scratch
        )
        let opened = try await shell.post("/v1/tunnels", spec)
        #expect(opened.status == 201, "\(opened.body)")

        let local = try await broker.forward("tcp:0", "--endpoint", "desk")
        let script = """
            import sys
            from websockets.sync.client import connect
            with connect('ws://127.0.0.1:' + sys.argv[1]) as socket:
                socket.send('{"jsonrpc":"2.0","id":"7","method":"initialize","params":{}}')
                print(socket.recv())
            """
        let python = try await PythonPeers.webSocketInterpreter(in: scratch)
        let said = try await Program.run(python, ["-c", script, "\(local)"], in: scratch)
        #expect(said.joined().contains("openagents-mac"), "\(said)")
    }

    @Test(.needs(.root, .namespaces, .avahi))
    func `an announced server gets no connection before its approval, and is identified after it`() async throws {
        let host = try await AvahiHost(in: scratch)
        let server = try await OpenAgentsServer(in: scratch)
        let broker = try await RunningBroker(in: scratch, host: host)
        let list = try await LiveList(of: broker)
        _ = try await host.start("avahi-publish-service", ["Lab", "_openagents._tcp", "\(server.port)"])
        let row = try await list.first("the server is listed") { $0.kind == .openagents }
        #expect(row.endpoint.approval == .pending)
        #expect(!server.program.log.contains("head:"))

        _ = try await broker.ask("approve", row.endpoint.id.text, "--address", "127.0.0.1")

        let after = try await list.first("it is identified", from: row.next) { $0.server != nil }
        #expect(after.endpoint.server?.text == "openagents-mac")
    }
}
