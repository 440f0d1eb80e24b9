import FoundationEssentials
import Model
import TestSupport
import Testing

@Suite(.serialized, .needs(.root, .namespaces, .avahi, .python), .timeLimit(.minutes(3)), .scratchFolder)
struct DebugLinkTests {
    private let scratch = ScratchFolder.current

    /// A picture of one pixel.
    private static let png =
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII="

    /// The port in the broker's advertisement, as another host sees it.
    private static func advertisedPort(seenFrom host: AvahiHost) async throws -> UInt16 {
        try await eventually("the state debugger is advertised") {
            let lines = try await host.run("avahi-browse", ["-rpt", "_debug._tcp"])
            let resolved = lines.first { line in
                line.hasPrefix("=;eth0;IPv4;patchbay-here;") && line.hasSuffix(";\"via=patchbay\"")
            }
            return resolved?.split(separator: ";").dropLast().last.flatMap { UInt16($0) }
        }
    }

    private static func configuration(_ more: String = "") -> String {
        "[debuglink]\nenabled = true\nname = \"patchbay-here\"\n\(more)"
    }

    /// Returns the output of a command, regardless of its exit status.
    private static func output(_ broker: RunningBroker, _ words: String...) async throws -> String {
        let program = try await broker.start(words)
        _ = try await program.exitStatus(within: .seconds(60))
        return program.log
    }

    private static func endpoint(
        at address: String,
        _ list: LiveList,
        from start: Int = 0,
        isOnline: Bool = true
    ) async throws -> LiveList.Moment {
        try await list.first("the app at \(address) is listed", from: start) { endpoint in
            endpoint.location.machine?.text == address && (endpoint.state == .online) == isOnline
        }
    }

    @Test func `apps find the debugger, are endpoints after approval, and get back only their own states`()
        async throws
    {
        let network = try await MDNSNetwork(["here", "one", "two"], in: scratch)
        let (here, one, two) = (network.hosts[0], network.hosts[1], network.hosts[2])
        let broker = try await RunningBroker(in: scratch, on: here, configuration: Self.configuration())
        let list = try await LiveList(of: broker)
        let port = try await Self.advertisedPort(seenFrom: one)
        let earlier = try await DebugPeer.app(.earlier, on: one, to: "10.99.0.1", port)
        let later = try await DebugPeer.app(.later, on: two, to: "10.99.0.1", port)
        for (number, app) in [earlier, later].enumerated() {
            try await app.send(#"{"n":1.0,"app":\#(number)}"#, "start", picture: Self.png)
            try await app.send(#"{"n":2,"app":\#(number)}"#, "tap")
        }
        let first = try await Self.endpoint(at: "10.99.0.2", list).endpoint
        let second = try await Self.endpoint(at: "10.99.0.3", list).endpoint
        #expect(first.id.text == "debug-app-10-99-0-2")
        #expect([first.kind, second.kind] == [.debug, .debug])
        #expect([first.approval, second.approval] == [.pending, .pending])

        let refused = try await Self.output(broker, "debug", first.id.text)
        #expect(refused.contains("patchbay approve debug-app-10-99-0-2"), "\(refused)")
        for endpoint in [first, second] { _ = try await broker.ask("approve", endpoint.id.text) }

        let states = try await broker.ask("debug", first.id.text)
        #expect(states.count == 3)
        #expect(states.last?.hasSuffix("tap") == true)
        #expect(try await broker.ask("debug", "show", first.id.text, "1") == [#"{"n":1.0,"app":0}"#])
        #expect(try await broker.ask("debug", "show", second.id.text, "--pointer", "/app") == ["1"])
        #expect(try await broker.ask("debug", "diff", first.id.text, "1", "2") == ["~ /n: 1.0 -> 2"])
        let picture = scratch.file("shot.png")
        _ = try await broker.ask("debug", "shot", first.id.text, "--output", picture)
        #expect(FileManager.default.contents(atPath: picture)?.isEmpty == false)
        let agent = try await broker.start("mcp", "--endpoint", first.id.text, input: .pipe)
        let client = #"{"name":"test","version":"1"}"#
        let parameters = #"{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":\#(client)}"#
        try agent.write(#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":\#(parameters)}"# + "\n")
        try await agent.waitForLine("patchbay")
        try agent.write(#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"# + "\n")
        try await agent.waitForLine(#""name":"send_state""#)
        try agent.write(#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"shot"}}"# + "\n")
        try await agent.waitForLine(#""mimeType":"image/png""#)

        #expect(try await broker.ask("debug", "send", first.id.text, "1") == ["Sent state 1."])
        let frame = DebugPeer.hex(DebugPeer.Client.earlier.frame(#"{"n":1.0,"app":0}"#))
        try await earlier.program.waitForLine("received \(frame)")
        #expect(try await broker.ask("call", second.id.text, "send_state", "number=1").count == 1)
        let other = DebugPeer.hex(DebugPeer.Client.later.frame(#"{"n":1.0,"app":1}"#))
        try await later.program.waitForLine("received \(other)")
        #expect(earlier.received == ["received \(frame)"])
        #expect(later.received == ["received \(other)"])
        // The broker's own advertisement is no endpoint.
        #expect(try await broker.endpoints().map(\.id) == [first.id, second.id])
        let tunnel = try await Self.output(broker, "forward", "tcp:0", "--endpoint", first.id.text, "--detach")
        #expect(tunnel.contains("no tunnel can lead to it"), "\(tunnel)")
        #expect(tunnel.contains("patchbay debug \(first.id)"), "\(tunnel)")
        #expect(try await broker.ask("tunnels").allSatisfy { !$0.contains(first.id.text) })
        let missing = try await broker.start(["debug", "show", first.id.text, "99"])
        #expect(try await missing.exitStatus(within: .seconds(20)) == .exited(66))
        let status = try await broker.ask("status")
        #expect(status.contains { $0.hasPrefix("debuglink  ok: listens on ") && $0.hasSuffix("2 apps connected") })
    }

    @Test func `an app that is launched again keeps its endpoint and approval, and garbage harms no other app`()
        async throws
    {
        let network = try await MDNSNetwork(["here", "one", "two"], in: scratch)
        let (here, one, two) = (network.hosts[0], network.hosts[1], network.hosts[2])
        let broker = try await RunningBroker(
            in: scratch,
            on: here,
            configuration: Self.configuration("listen = \"0.0.0.0:4711\"\n")
        )
        let list = try await LiveList(of: broker)
        let app = try await DebugPeer.app(.earlier, on: one, to: "10.99.0.1", 4711)
        try await app.send(#"{"before":"crash"}"#, "tap")
        let launched = try await Self.endpoint(at: "10.99.0.2", list)
        _ = try await broker.ask("approve", launched.endpoint.id.text)
        #expect(try await broker.ask("debug", launched.endpoint.id.text).count == 2)

        app.program.kill()
        let gone = try await Self.endpoint(at: "10.99.0.2", list, from: launched.next, isOnline: false)
        #expect(gone.endpoint.state == .offline)
        let before = [#"{"before":"crash"}"#]
        #expect(try await broker.ask("debug", "show", launched.endpoint.id.text) == before)
        #expect(try await broker.ask("debug", "show", launched.endpoint.id.text, "--previous") == before)
        let again = try await DebugPeer.app(.later, on: one, to: "10.99.0.1", 4711)
        try await again.send("{}", "start")
        let returned = try await Self.endpoint(at: "10.99.0.2", list, from: gone.next)
        let back = returned.endpoint
        #expect(back.id == launched.endpoint.id)
        #expect(back.approval == .approved)
        let last = try await broker.ask("debug", "show", back.id.text, "--previous")
        #expect(last == [#"{"before":"crash"}"#])

        let garbage = try await DebugPeer.app(.later, on: two, to: "10.99.0.1", 4711)
        try garbage.program.write("raw 474554202f20485454502f312e310d0a\n")
        try await garbage.program.waitForLine("closed")
        let reason = "a frame begins with 0x47 instead of 0xCE"
        try await broker.daemon.waitForLine(reason)
        #expect(try await broker.endpoints().map(\.id) == [back.id])
        let status = try await broker.ask("status").joined(separator: "\n")
        #expect(status.contains("1 refused, the last one from 10.99.0.3"))
        try await again.send(#"{"a":1}"#, "tap")
        #expect(try await broker.ask("debug", "show", back.id.text) == [#"{"a":1}"#])
        try again.program.write("raw 00\n")
        let broken = try await Self.endpoint(at: "10.99.0.2", list, from: returned.next, isOnline: false).endpoint
        #expect(broken.reason?.contains("a frame begins with 0x00 instead of 0xCE") == true)

        try await broker.restart()
        let relaunched = try await DebugPeer.app(.later, on: one, to: "10.99.0.1", 4711)
        try await relaunched.send("{}", "start")
        try await eventually("the app has its ID and approval after a restart of the broker") {
            try await broker.endpoints().contains { endpoint in
                endpoint.id == back.id && endpoint.state == .online && endpoint.approval == .approved
            }
        }
        withExtendedLifetime(relaunched) {}
    }

    @Test func `another debugger gets the stream of each app, and its states reach approved apps only`() async throws {
        let network = try await MDNSNetwork(["here", "one", "mac"], in: scratch)
        let (here, one, mac) = (network.hosts[0], network.hosts[1], network.hosts[2])
        let debugger = try await DebugPeer.debugger(on: mac, port: 4712)
        try await mac.start("avahi-publish-service", ["Annas Mac", "_debug._tcp", "4712"])
            .waitForLine("Established under name")
        let broker = try await RunningBroker(
            in: scratch,
            on: here,
            configuration: Self.configuration("forward = \"Annas Mac\"\nlisten = \"0.0.0.0:4711\"\n")
        )
        let list = try await LiveList(of: broker)
        _ = try await list.first("the debugger is listed") { $0.name.text == "Annas Mac" && !$0.routes.isEmpty }
        let app = try await DebugPeer.app(.earlier, on: one, to: "10.99.0.1", 4711)
        let frame = DebugPeer.Client.earlier.frame(#"{"state":{"a":1},"action":"tap"}"#)

        try await app.send(#"{"a":1}"#, "tap")

        let listed = try await Self.endpoint(at: "10.99.0.2", list).endpoint
        try await debugger.program.waitForLine("from 1 \(DebugPeer.hex(frame))")
        func replay(_ state: String) throws {
            let frame = DebugPeer.Client.earlier.frame(state)
            try debugger.program.write("send 1 \(DebugPeer.hex(frame))\n")
        }
        try replay(#"{"a":7}"#)
        try await broker.daemon.waitForLine("is not approved")
        _ = try await broker.ask("approve", listed.id.text)
        try replay(#"{"a": 8}"#)
        let replayed = "received \(DebugPeer.hex(DebugPeer.Client.earlier.frame(#"{"a": 8}"#)))"
        try await app.program.waitForLine(replayed)
        #expect(app.received == [replayed])
    }

    @Test func `500 frames of 2 MB arrive, and none is lost`() async throws {
        let port = try FreePorts.take()[0]
        let broker = try await RunningBroker(
            in: scratch,
            configuration: Self.configuration("listen = \"127.0.0.1:\(port)\"\n")
        )
        let (count, size) = (500, 2_000_000)
        let (peer, began) = try await DebugPeer.frames(count, ofSize: size, to: "127.0.0.1", port, in: scratch)
        // The sender ends when the kernel has the last frame. The broker has it when the state is listed.
        try await eventually("the app is listed") { try await broker.endpoints().count == 1 }
        let id = try #require(try await broker.endpoints().first?.id.text)
        _ = try await broker.ask("approve", id)
        try await eventually("the last frame is there") {
            try await Self.output(broker, "debug", "list", id, "--json").contains("\"number\":\(count),")
        }
        let seconds = Date().timeIntervalSince1970 - began
        let rate = Double(count * size) / seconds / 1_000_000
        print("state debugger: \(Int(rate)) MB/s, with the time of the last query")
        #expect(try await Self.output(broker, "debug", "list", id, "--json").contains("\"droppedStates\":450"))
        peer.program.closeInput()
    }
}
