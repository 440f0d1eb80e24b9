import Model
import TestSupport
import Testing

/// Apps that serve newline-delimited MCP over TCP (`_mcp._tcp`), used by HTTP clients.
@Suite(.needs(.python), .timeLimit(.minutes(3)), .scratchFolder) struct LineTests {
    private let scratch = ScratchFolder.current

    @Test(.needs(.root, .namespaces, .avahi), arguments: LineApp.Habits.allCases)
    func `a line-based app is discovered, called by every client, and called again after a relaunch`(
        model: LineApp.Habits
    ) async throws {
        let (here, there) = try await MDNSNetwork.pair("here", "there", in: scratch)
        let port = try FreePorts.take()[0]
        let broker = try await RunningBroker(
            in: scratch,
            on: here,
            configuration: AgentBroker.configuration(port: port)
        )
        let agent = try await AgentBroker(socket: broker.socket, port: port, in: scratch)
        let list = try await LiveList(of: broker)
        let first = try await LineApp(like: model, version: "1", on: there, in: scratch)
        let advert = try await first.advertise(through: there)
        let seen = try await list.first("the app is online") { $0.state == .online }
        #expect(seen.endpoint.kind == .mcp)
        let id = seen.endpoint.id.text
        _ = try await broker.ask("approve", id)
        let clients = try await AgentClient.all(
            to: agent.url(of: id),
            grant: agent.grant,
            namespace: here.namespace,
            in: scratch
        )
        try await Self.expect(clients, "launch_context", toSay: #""version": "1""#)
        try await Self.expect(clients, "steps", toSay: "steps")
        // All clients share one connection, which is one session.
        #expect(first.program.output.count { $0.hasPrefix("greeted: ") } == 1)

        advert.kill()
        try await first.quit()
        let calls = try clients.map { ($0, try $0.begin("tap_element")) }
        let second = try await LineApp(like: model, version: "2", on: there, in: scratch)
        _ = try await second.advertise(through: there)
        for (client, start) in calls {
            let (text, log) = try await client.outcome(from: start)
            #expect(text?.contains(#""version": "2""#) == true, "\(log)")
        }
        #expect(second.program.output.count { $0 == "call: tap_element" } == clients.count)
    }

    @Test(arguments: LineApp.Habits.allCases)
    func `a configured line-based app is detected, and an interrupted call is not repeated`(
        model: LineApp.Habits
    ) async throws {
        let broker = try await RunningBroker(in: scratch, configuration: "[api]\ntcp = false\n")
        let app = try await LineApp(like: model, in: scratch)
        let added = try await broker.ask("add", "Shop", "127.0.0.1:\(app.port)", "--kind", "mcp")
        let id = try #require(added.first?.split(separator: " ").last?.dropLast()).description
        #expect(try await broker.ask("tools", id).contains { $0.hasPrefix("tap_element") })
        #expect(try await broker.ask("call", id, "launch_context").joined().contains("3.2.0"))

        let cut = try await broker.start("call", id, "wait", "seconds=30")
        try await app.program.waitForLine("call: wait")
        try await app.quit()
        #expect(try await cut.exitStatus() != .exited(0))
        #expect(cut.log.contains("delivered, result unknown"))

        let again = try await LineApp(like: model, version: "4", port: app.port, in: scratch)
        #expect(try await broker.ask("call", id, "tap_element").joined().contains(#""version": "4""#))
        // The app's output is read in the background.
        try await again.program.waitForLine("call: tap_element")
        #expect(again.program.output.count { $0 == "call: tap_element" } == 1)
    }

    @Test(.needs(.usbmuxd), arguments: LineApp.Habits.allCases)
    func `a line-based app on a phone is detected, and probes of its port end no call`(
        model: LineApp.Habits
    ) async throws {
        let app = try await LineApp(like: model, isSingle: true, in: scratch)
        let rig = try await UsbmuxdFixture(["00008030-001A2B3C4D5E6F70"], in: scratch)
        let broker = try await RunningBroker(
            in: scratch,
            phones: rig,
            configuration: "[api]\ntcp = false\n[devices]\nprobe_ports = [\(app.port)]\n"
        )
        let endpoint = try await eventually("it is found out") {
            try await broker.endpoints().first { $0.kind == .mcp && $0.state == .online }
        }

        // The port is probed once per second, and each new connection replaces the app's current client.
        let text = try await broker.ask("call", endpoint.id.text, "wait", "seconds=4").joined()

        #expect(text.contains(#""called": "wait""#), "\(text)")
        #expect(app.program.output.count { $0 == "call: wait" } == 1)
        try await app.quit()
        try await eventually("its end is seen") { try await broker.endpoints().first?.state == .offline }
    }

    private static func expect(_ clients: [AgentClient], _ tool: String, toSay words: String) async throws {
        for (client, start) in try clients.map({ ($0, try $0.begin(tool)) }) {
            let (text, log) = try await client.outcome(from: start)
            #expect(text?.contains(words) == true, "\(log)")
        }
    }
}
