import TestSupport
import Testing

/// Concurrent clients of one app under one grant: each gets only the app's requests for its own call.
@Suite(.needs(.python), .scratchFolder) struct CrosstalkTests {
    private let scratch = ScratchFolder.current

    @Test func `an app's request reaches only the client whose call it belongs to`() async throws {
        let port = try FreePorts.take()[0]
        let broker = try await RunningBroker(in: scratch, configuration: AgentBroker.configuration(port: port))
        let agent = try await AgentBroker(socket: broker.socket, port: port, in: scratch)
        let server = try await PeerServer(.mcp1, in: scratch)
        let added = try await broker.ask("add", "curious", "127.0.0.1:\(server.port)", "--kind", "mcp")
        let id = try #require(added.first?.split(separator: " ").last?.dropLast()).description
        _ = try await broker.ask("approve", id)
        let clients = try await withThrowingTaskGroup(of: (String, AgentClient).self) { group in
            for (number, peer) in [AgentPeer.mcp1, .mcp1, .mcp1, .mcp2Modern, .mcp2Modern, .mcp2Modern].enumerated() {
                let name = "caller-\(number)"
                group.addTask {
                    let url = agent.url(of: id)
                    return (name, try await AgentClient(peer, to: url, grant: agent.grant, name: name, in: scratch))
                }
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }

        for _ in 1...5 {
            let calls = try clients.map { ($0, $1, try $1.begin("ask_twice")) }
            for (name, client, start) in calls {
                let (text, log) = try await client.outcome(from: start)
                let own = "{'name': '\(name)', 'age': 7}"

                #expect(text == "\(own) and \(own)", "\(log)")
            }
        }
    }
}
