import Model
import TestSupport
import Testing

/// Clients keep using an app's URL across restarts of app, phone and broker; five client libraries.
@Suite(.needs(.python), .timeLimit(.minutes(3)), .scratchFolder) struct RestartTests {
    private let scratch = ScratchFolder.current
    private static let phone = "00008030-001A2B3C4D5E6F70"

    @Test func `a client of a killed broker learns that its call may have been executed, and continues`()
        async throws
    {
        let port = try FreePorts.take()[0]
        let app = try await SampleApp(in: scratch)
        let broker = try await RunningBroker(
            in: scratch,
            configuration: AgentBroker.configuration(port: port, shop: app)
        )
        let agent = try await AgentBroker(socket: broker.socket, port: port, in: scratch)
        var clients: [AgentClient] = []
        // The protocol version of the other clients cannot resume a call.
        for peer in [AgentPeer.mcp1, .mcp2Legacy, .fastmcp2] {
            clients.append(try await AgentClient(peer, to: agent.url(of: "shop"), grant: agent.grant, in: scratch))
        }
        let calls = try clients.map { ($0, try $0.begin("wait", #"{"seconds": 20}"#)) }
        try await eventually("the app has them") { app.program.output.count { $0 == "call: wait" } == 3 }
        // The stream of a call begins after 100 ms at the latest.
        try await Task.sleep(for: .seconds(1))

        try await broker.restart(isKilled: true)

        for (client, start) in calls {
            let (text, log) = try await client.outcome(from: start)
            #expect(text == nil && log.contains("result unknown"), "\(log)")
        }
        for client in clients {
            let (text, log) = try await client.call("get_screen")
            #expect(text?.contains("get_screen") == true, "\(log)")
        }
        #expect(app.program.output.count { $0 == "call: wait" } == 3)
    }

    @Test(.needs(.root, .namespaces, .avahi))
    func `an app that returns on another port with another token keeps its URL`() async throws {
        let (here, there) = try await MDNSNetwork.pair("here", "there", in: scratch)
        let port = try FreePorts.take()[0]
        let broker = try await RunningBroker(
            in: scratch,
            on: here,
            configuration: AgentBroker.configuration(port: port)
        )
        let agent = try await AgentBroker(socket: broker.socket, port: port, in: scratch)
        let list = try await LiveList(of: broker)
        let first = try await SampleApp(version: "1", mode: .ios, on: there, in: scratch)
        let advert = try await first.advertise(through: there)
        let seen = try await list.first("the app is online") { $0.state == .online }
        let id = seen.endpoint.id.text
        _ = try await broker.ask("approve", id)
        try await broker.setSecret(try #require(first.token), of: id)
        let url = agent.url(of: id)
        let clients = try await AgentClient.all(to: url, grant: agent.grant, namespace: here.namespace, in: scratch)
        try await Self.expect("launch_context", of: clients, toSay: #""version": "1""#)

        advert.kill()
        try await first.quit()
        let second = try await SampleApp(version: "2", mode: .ios, on: there, in: scratch)
        _ = try await second.advertise(through: there)
        #expect(second.port != first.port && second.token != first.token)
        // The calls arrive before the new token and wait for it.
        _ = try await list.first("the new port is known", from: seen.next) { endpoint in
            endpoint.routes.contains { $0.port == second.port }
        }
        let calls = try clients.map { ($0, try $0.begin("launch_context")) }
        try await broker.setSecret(try #require(second.token), of: id)

        try await Self.expect(calls, toSay: #""version": "2""#)
    }

    @Test(.needs(.root, .namespaces, .avahi), arguments: ["secret set", "endpoint_pair"], [true, false])
    func `a session URL that is entered before its launch is announced applies to that launch`(
        by way: String,
        isListed: Bool
    ) async throws {
        let (here, there) = try await MDNSNetwork.pair("here", "there", in: scratch)
        let broker = try await RunningBroker(in: scratch, on: here, configuration: "[api]\ntcp = false\n")
        let list = try await LiveList(of: broker)
        let first = try await SampleApp(mode: .ios, on: there, in: scratch)
        let advert = try await first.advertise(through: there)
        let seen = try await list.first("the app is online") { $0.state == .online }
        let id = seen.endpoint.id.text
        _ = try await broker.ask("approve", id)
        try await first.quit()
        if !isListed {
            advert.kill()
            _ = try await list.first("the app is away", from: seen.next) { $0.state == .offline }
        }

        let second = try await SampleApp(version: "2", mode: .ios, on: there, in: scratch)
        let url = try #require(second.sessionURL)
        if way == "secret set" {
            try await broker.setSecret(url, of: id)
        } else {
            let arguments = #"{"endpoint": "\#(id)", "code": "\#(url)"}"#
            let call = #"{"name": "endpoint_pair", "arguments": \#(arguments)}"#
            let request = #"{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": \#(call)}"#
            let said = try await Program.run(
                "curl",
                [
                    "-sS", "--unix-socket", broker.socket, "-H", "Content-Type: application/json", "-H",
                    "Accept: application/json, text/event-stream", "-d", request, "http://localhost/mcp",
                ],
                in: scratch
            )
            // The launch that the URL belongs to is not reachable yet.
            #expect(said.joined().contains(#""state":"kept""#), "\(said)")
        }
        advert.kill()
        _ = try await second.advertise(through: there)
        _ = try await list.first("the new port is known", from: seen.next) { endpoint in
            endpoint.routes.contains { $0.port == second.port }
        }

        #expect(try await broker.ask("call", id, "launch_context").joined().contains(#""version": "2""#))
    }

    @Test func `a call waits for an app that is offline for 3 s and is executed once`() async throws {
        let port = try FreePorts.take()[0]
        let broker = try await RunningBroker(in: scratch, configuration: AgentBroker.configuration(port: port))
        let agent = try await AgentBroker(socket: broker.socket, port: port, in: scratch)
        let first = try await SampleApp(in: scratch)
        let id = try await Self.add(first, to: broker)
        let clients = try await AgentClient.all(to: agent.url(of: id), grant: agent.grant, in: scratch)
        try await Self.expect("launch_context", of: clients, toSay: "com.example.shop")

        try await first.quit()
        let calls = try clients.map { ($0, try $0.begin("tap_element")) }
        try await ContinuousClock().sleep(for: .seconds(3))
        let second = try await SampleApp(port: first.port, in: scratch)

        try await Self.expect(calls, toSay: #""called": "tap_element""#)
        // A second execution would be logged by now: each call is answered after its log line.
        try await eventually("every call is in the app's log") {
            second.program.output.count { $0 == "call: tap_element" } >= clients.count
        }
        #expect(second.program.output.count { $0 == "call: tap_element" } == clients.count)
    }

    @Test(arguments: [AgentPeer.Library.mcp1, .fastmcp4])
    func `an app that sends requests to its clients can do so again after a relaunch`(
        library: AgentPeer.Library
    ) async throws {
        let port = try FreePorts.take()[0]
        let broker = try await RunningBroker(in: scratch, configuration: AgentBroker.configuration(port: port))
        let agent = try await AgentBroker(socket: broker.socket, port: port, in: scratch)
        let first = try await PeerServer(library, in: scratch)
        let id = try await Self.add(first.port, "mcp", to: broker)
        // 2026-07-28 has no stream for server requests.
        let clients = try await AgentClient.all(to: agent.url(of: id), grant: agent.grant, in: scratch).filter {
            library == .mcp1 || ![.mcp2Modern, .fastmcp4].contains($0.peer)
        }
        try await Self.expect("roots", of: clients, toSay: "file:///one file:///two")

        first.program.kill()
        _ = try await first.program.exitStatus()
        let calls = try clients.map { ($0, try $0.begin("roots")) }
        _ = try await PeerServer(library, port: first.port, in: scratch)

        try await Self.expect(calls, toSay: "file:///one file:///two")
        try await Self.expect("ask", of: clients, toSay: "accept")
    }

    @Test(.needs(.root, .usbmuxd)) func `a call waits for a phone that is being replugged`() async throws {
        let rig = try await UsbmuxdFixture(in: scratch)
        let port = try FreePorts.take()[0]
        let broker = try await RunningBroker(
            in: scratch,
            phones: rig,
            configuration: AgentBroker.configuration(port: port)
        )
        let agent = try await AgentBroker(socket: broker.socket, port: port, in: scratch)
        let list = try await LiveList(of: broker)
        _ = try await SampleApp(address: PhoneOptions.loopback, port: 9_876, in: scratch)
        try await rig.attach(Self.phone, .ofItsOwn)
        let seen = try await list.first("the app is online") { $0.state == .online }
        let url = agent.url(of: seen.endpoint.id.text)
        let clients = try await AgentClient.all(to: url, grant: agent.grant, in: scratch)
        try await Self.expect("launch_context", of: clients, toSay: "com.example.shop")

        try await rig.detach(Self.phone)
        let calls = try clients.map { ($0, try $0.begin("launch_context")) }
        try await ContinuousClock().sleep(for: .seconds(1))
        try await rig.attach(Self.phone, .ofItsOwn)

        try await Self.expect(calls, toSay: "com.example.shop")
    }

    @Test func `a restart of the broker behind the systemd socket is invisible to its clients`() async throws {
        let port = try FreePorts.take()[0]
        let socket = scratch.file("patchbay.sock")
        let config = try scratch.write(AgentBroker.configuration(port: port), to: "patchbay.toml")
        let keeper = try await Program(
            "python3",
            [
                "\(AgentPeer.folder)/keeper.py", "\(port)", socket, try Executable.built("patchbayd"), "--config",
                config, "--state-directory", scratch.file("state"),
            ],
            in: scratch,
            environment: [
                "PATCHBAY_SOCKET": socket, "DBUS_SYSTEM_BUS_ADDRESS": "unix:path=\(scratch.path)/no-bus",
                "USBMUXD_SOCKET_ADDRESS": "\(scratch.path)/no-usbmuxd", "HOME": scratch.path,
            ],
            input: .pipe
        )
        try await keeper.waitForLine("ready")
        let agent = try await AgentBroker(socket: socket, port: port, in: scratch)
        let app = try await SampleApp(in: scratch)
        let words = ["add", "Shop", "127.0.0.1:\(app.port)", "--kind", "appreveal", "--socket", socket]
        let added = try await Program.run(Executable.built("patchbay"), words, in: scratch)
        let id = try #require(added.first?.split(separator: " ").last?.dropLast()).description
        _ = try await Program.run(Executable.built("patchbay"), ["approve", id, "--socket", socket], in: scratch)
        let clients = try await AgentClient.all(to: agent.url(of: id), grant: agent.grant, in: scratch)
        try await Self.expect("launch_context", of: clients, toSay: "com.example.shop")

        try keeper.write("restart 1\n")
        try await keeper.waitForLine("restarted")
        let calls = try clients.map { ($0, try $0.begin("launch_context")) }

        try await Self.expect(calls, toSay: "com.example.shop")
        try await Self.expect("launch_context", of: clients, toSay: "com.example.shop")
    }

    private static func expect(_ tool: String, of clients: [AgentClient], toSay words: String) async throws {
        try await expect(clients.map { ($0, try $0.begin(tool)) }, toSay: words)
    }

    private static func expect(_ calls: [(AgentClient, Int)], toSay words: String) async throws {
        for (client, start) in calls {
            let (text, log) = try await client.outcome(from: start)
            #expect(text?.contains(words) == true, "\(log)")
        }
    }

    /// Adds the app by its address; an address added by a person counts as approved.
    private static func add(_ app: SampleApp, to broker: RunningBroker) async throws -> String {
        try await add(app.port, "appreveal", to: broker)
    }

    private static func add(_ port: UInt16, _ kind: String, to broker: RunningBroker) async throws -> String {
        let added = try await broker.ask("add", "Shop", "127.0.0.1:\(port)", "--kind", kind)
        let id = try #require(added.first?.split(separator: " ").last?.dropLast()).description
        _ = try await broker.ask("approve", id)
        return id
    }
}
