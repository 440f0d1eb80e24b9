import FoundationEssentials
import TestSupport
import Testing

/// A grant of `patchbay pair --read-only`, used by real MCP clients and by `patchbay`.
@Suite(.needs(.python), .scratchFolder) struct ReadOnlyGrantTests {
    private let scratch = ScratchFolder.current

    private struct Open: Decodable {
        let pairing: String
    }

    @Test(.timeLimit(.minutes(2)), arguments: [AgentPeer.mcp1, .mcp2Modern])
    func `a read-only grant gets a screenshot and is refused a tap, at every server and in the command line`(
        peer: AgentPeer
    ) async throws {
        let port = try FreePorts.take()[0]
        let app = try await SampleApp(in: scratch)
        let broker = try await RunningBroker(in: scratch, configuration: "[api]\nport = \(port)\n[mcp]\nall = true\n")
        _ = try await broker.ask("add", "Shop", "127.0.0.1:\(app.port)", "--kind", "appreveal")
        let open = try await broker.ask("pair", "--read-only", "--uses", "2", "--detach", "--json")
        let pairing = try JSONDecoder().decode(Open.self, from: Data(open.joined().utf8)).pairing
        let grant = try #require(try await join(broker, pairing, "--print", "-").last)
        let limit = "your grant is limited to read-only tools, and \"tap_element\" of shop is not known to be one"

        for (path, prefix) in [("e/shop/mcp", ""), ("all/mcp", "shop__")] {
            let client = try await AgentClient(peer, to: "http://127.0.0.1:\(port)/\(path)", grant: grant, in: scratch)
            let shot = try await client.call("\(prefix)screenshot")
            #expect(shot.text != nil && client.resultTypes.last?.contains("image") == true, "\(shot.log)")
            let tap = try await client.call("\(prefix)tap_element", #"{"element_id": "buy"}"#)
            #expect(tap.text == nil && tap.log.contains(limit.replacing("\"", with: "\\\"")), "\(tap.log)")
        }
        let agent = try await AgentClient(peer, to: "http://127.0.0.1:\(port)/mcp", grant: grant, in: scratch)
        let shot = try await agent.call("endpoint_call", #"{"endpoint": "shop", "name": "screenshot"}"#)
        #expect(shot.text != nil && agent.resultTypes.last?.contains("image") == true, "\(shot.log)")
        let tap = try await agent.call("endpoint_call", #"{"endpoint": "shop", "name": "tap_element"}"#)
        #expect(tap.text == nil && tap.log.contains(limit.replacing("\"", with: "\\\"")), "\(tap.log)")
        let tunnel = try await agent.call("port_forward", #"{"action": "open", "endpoint": "shop"}"#)
        #expect(tunnel.text == nil && tunnel.log.contains("would bypass the limit to read-only tools"))

        _ = try await join(broker, pairing, "-")
        let address = "127.0.0.1:\(port)"
        let tools = try await broker.ask("tools", "shop", "--broker", address)
        #expect(tools.contains { $0.hasPrefix("screenshot") } && !tools.contains { $0.hasPrefix("tap_element") })
        #expect(try await broker.ask("call", "shop", "get_screen", "--broker", address).isEmpty == false)
        let refused = try await broker.start("call", "shop", "tap_element", "element_id=buy", "--broker", address)
        #expect(try await refused.exitStatus() == .exited(77), "\(refused.log)")
        #expect(refused.log.contains(limit), "\(refused.log)")
        let forward = try await broker.start("forward", "tcp:0", "--endpoint", "shop", "--detach", "--broker", address)
        #expect(try await forward.exitStatus() != .exited(0))
        let grants = try await broker.ask("grants")
        #expect(grants.contains { $0.contains("endpoint.call, registry.read, secret.use with read-only tools") })
        #expect(app.program.output.count { $0.hasPrefix("call: tap_element") } == 0)
        #expect(app.program.output.count { $0.hasPrefix("call: screenshot") } == 3)
    }

    @Test func `pair explains why a limited grant cannot open tunnels`() async throws {
        let broker = try await RunningBroker(in: scratch, configuration: "[api]\ntcp = false\n")
        let pair = try await broker.start("pair", "--read-only", "--scope", "tunnel.open", "--detach")
        #expect(try await pair.exitStatus() == .exited(64), "\(pair.log)")
        #expect(pair.log.contains("tunnel.open would bypass the limit to read-only tools"), "\(pair.log)")
        _ = try await broker.ask("pair", "--tool", "screenshot", "--tool", "get_elements", "--detach")
        let invites = try await broker.ask("invites")
        #expect(invites.contains { $0.contains("with the tools get_elements, screenshot") }, "\(invites)")
    }

    private func join(_ broker: RunningBroker, _ pairing: String, _ arguments: String...) async throws -> [String] {
        let join = try await broker.start(["join"] + arguments, input: .pipe)
        try join.write(pairing + "\n")
        #expect(try await join.exitStatus() == .exited(0), "\(join.log)")
        return join.output
    }
}
