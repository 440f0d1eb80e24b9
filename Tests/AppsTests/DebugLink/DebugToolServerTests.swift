import FoundationEssentials
import Model
import Samples
import SystemIO
import TestSupport
import Testing

@testable import Apps

@Suite(.timeLimit(.minutes(1))) struct DebugToolServerTests {
    private static let png = "iVBORw0KGgo="

    /// Runs a tool server for one connected app, and passes a stream to the app's tools.
    private func connected(
        _ framing: DebugFraming = .objcio,
        sending states: [String] = [],
        picture: String? = nil,
        _ body: (FakeApp, ToolStream) async throws -> Void
    ) async throws {
        try await DebugLinkFixture.running { listener in
            let tools = DebugToolServer(for: listener.apps)
            var changes = await Changes(of: listener)
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { try await tools.run() }
                let app = try await FakeApp.connect(to: listener, &changes, framing)
                for (index, state) in states.enumerated() {
                    try await app.send(state, picture: picture)
                    try await changes.waitForState(index + 1, of: app.id)
                }
                let route = try #require(await listener.apps.apps.first?.route)
                try await body(app, ToolStream(try await tools.dial(route)))
                group.cancelAll()
            }
        }
    }

    @Test func `an MCP client gets the five tools, and only sending changes the app`() async throws {
        try await connected { _, tools in
            let server = try await tools.request("initialize", ["protocolVersion": "2025-11-25"])
            #expect(server["result"]?["protocolVersion"] == "2025-11-25")
            #expect(server["result"]?["serverInfo"]?["name"] == "patchbay-debuglink")

            let list = try await tools.request("tools/list")["result"]?["tools"]?.array ?? []
            #expect(list.compactMap { $0["name"]?.string } == ["states", "state", "diff", "shot", "send_state"])
            #expect(list.filter { $0["annotations"]?["readOnlyHint"] == true }.count == 4)
            #expect(try await tools.request("ping")["result"] == [:])
            #expect(try await tools.request("prompts/list")["error"]?["code"] == -32_601)
            #expect(try await tools.request("tools/call", ["name": "tap"])["error"]?["code"] == -32_602)
        }
    }

    @Test func `states are listed with their actions, sizes and pictures`() async throws {
        try await connected(sending: [#"{"a":1}"#, #"{"a": 22}"#], picture: Self.png) { _, tools in
            let list = try JSON(parsing: try await tools.text("states"))

            #expect(list["droppedStates"] == 0)
            let states = list["states"]?.array ?? []
            #expect(states.map { $0["number"] } == [1, 2])
            #expect(states.map { $0["bytes"] } == [7, 9])
            #expect(states.allSatisfy { $0["action"] == "tap" && $0["picture"] == "held" })
        }
    }

    @Test func `a state is returned as received, in part, or truncated`() async throws {
        try await connected(sending: [#"{"a":1}"#, #"{"a": {"b": [1.0, 2]}}"#]) { _, tools in
            #expect(try await tools.text("state") == #"{"a": {"b": [1.0, 2]}}"#)
            #expect(try await tools.text("state", ["number": 1]) == #"{"a":1}"#)
            #expect(try await tools.text("state", ["pointer": "/a/b/0"]) == "1.0")

            let cut = try await tools.call("state", ["limit": 6])
            #expect(cut["content"]?.array?.count == 2)
            #expect(cut["content"]?.array?.first?["text"] == #"{"a": "#)
        }
    }

    @Test func `a diff lists the changes between two states`() async throws {
        try await connected(sending: [#"{"a":1,"b":2}"#, #"{"a":1,"b":3}"#]) { _, tools in
            let diff = try JSON(parsing: try await tools.text("diff", ["from": 1, "to": 2]))

            #expect(diff["changes"] == [["pointer": "/b", "before": "2", "after": "3"]])
            #expect(diff["omittedChanges"] == 0)
        }
    }

    @Test func `the newest picture is an image`() async throws {
        try await connected(sending: ["1"], picture: Self.png) { app, tools in
            let image = try await tools.call("shot")["content"]?.array?.first

            #expect(image == ["type": "image", "data": .string(Self.png), "mimeType": "image/png"])
        }
    }

    @Test(arguments: DebugFraming.allCases)
    func `a state is sent to the app byte for byte`(framing: DebugFraming) async throws {
        let states = [#"{ "a" : 1.0 }"#, #"{"a":2}"#]
        try await connected(framing, sending: states) { app, tools in
            let answer = try await tools.text("send_state", ["number": 1])
            #expect(answer == "state 1 was sent to the app")

            let frame = framing.frame(Array(states[0].utf8))
            let received = try await app.stream.receive(frame.count)
            #expect(received == frame)
        }
    }

    private static let failures: [(tool: String, arguments: JSONObject, reason: String)] = [
        ("state", [:], "state 1 is not held, because the app has no states"),
        ("shot", [:], "no held state has a picture; the app must send it as the member imageData"),
        ("send_state", ["number": 4], "state 4 is not held"), ("send_state", [:], "the argument number is missing"),
        ("state", ["number": "x"], "the argument number must be a whole number"),
        ("state", ["pointer": "a"], "the argument pointer is no JSON pointer"),
        ("state", ["limit": 0], "the argument limit is 0; it must be 1 to 1000000"),
        ("states", ["previous": true], "no states of an earlier launch are held"),
        ("states", ["previous": 1], "the argument previous must be true or false"),
        ("send_state", ["number": 1, "previous": true], "the argument previous is unknown to send_state"),
        ("states", ["limit": 1], "the argument limit is unknown to states"),
    ]

    @Test(arguments: failures)
    func `a failed call is a result with the reason`(tool: String, arguments: JSONObject, reason: String) async throws {
        try await connected { _, tools in
            let result = try await tools.call(tool, arguments)

            #expect(result["isError"] == true)
            #expect(result["content"]?.array?.first?["text"]?.string?.hasPrefix(reason) == true, "\(result.text)")
        }
    }

    @Test func `the states of the launch before are readable, and those of another app of the machine are not`()
        async throws
    {
        try await DebugLinkFixture.running { listener in
            let tools = DebugToolServer(for: listener.apps)
            var changes = await Changes(of: listener)
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { try await tools.run() }
                let first = try await FakeApp.connect(to: listener, &changes)
                let other = try await FakeApp.connect(to: listener, &changes)
                for (app, state) in [(first, "1"), (other, "2")] {
                    try await app.send(state)
                    try await changes.waitForState(1, of: app.id)
                }
                for app in [first, other] {
                    app.stream.finish()
                    _ = try await changes.waitForEnd(of: app.id)
                }
                let again = try await FakeApp.connect(to: listener, &changes)
                try await again.send("3")
                try await changes.waitForState(1, of: again.id)
                let apps = await listener.apps.apps
                #expect(apps.map(\.place) == [1, 2, 1])

                let route = try #require(apps.last?.route)
                let stream = ToolStream(try await tools.dial(route))
                let previous = try await stream.text("state", ["previous": true])
                #expect(previous == "1")
                let current = try await stream.text("state")
                #expect(current == "3")
                again.stream.finish()
                group.cancelAll()
            }
        }
    }

    @Test func `the states of an app that has disconnected are readable, and none is sent`() async throws {
        try await DebugLinkFixture.running { listener in
            let tools = DebugToolServer(for: listener.apps)
            var changes = await Changes(of: listener)
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { try await tools.run() }
                let app = try await FakeApp.connect(to: listener, &changes)
                try await app.send("1")
                try await changes.waitForState(1, of: app.id)
                app.stream.finish()
                _ = try await changes.waitForEnd(of: app.id)

                let route = try #require(await listener.apps.apps.first?.route)
                let stream = ToolStream(try await tools.dial(route))
                for arguments: JSONObject in [[:], ["previous": true]] {
                    #expect(try await stream.text("state", arguments) == "1")
                    #expect(try JSON(parsing: try await stream.text("states", arguments))["connected"] == false)
                }
                let refused = try await stream.call("send_state", ["number": 1])
                #expect(refused.text.contains("is not connected; start the app again"))
                group.cancelAll()
            }
        }
    }

    @Test func `a missing state is marked as such, and an invalid argument is not`() async throws {
        try await connected(sending: ["1"]) { _, tools in
            let missing = try await tools.call("state", ["number": 99])
            #expect(missing["_meta"]?["patchbay/failure"] == "not-found")
            #expect(try await tools.call("state", ["number": "x"])["_meta"] == nil)
        }
    }

    @Test func `an invalid picture is listed as such and not returned`() async throws {
        try await connected(sending: ["1"], picture: "%%%") { _, tools in
            let list = try JSON(parsing: try await tools.text("states"))
            #expect(list["states"]?.array?.map { $0["picture"] } == ["invalid"])

            for arguments: JSONObject in [[:], ["number": 1]] {
                let result = try await tools.call("shot", arguments)
                #expect(result["isError"] == true)
                #expect(result.text.contains("the picture of state 1 is not a PNG or JPEG file in base64"))
            }
        }
    }

    @Test func `the tools of an app that is not connected cannot be reached`() async throws {
        try await DebugLinkFixture.running { listener in
            let tools = DebugToolServer(for: listener.apps)
            let route = NetworkRoute(
                address: "127.0.0.1",
                port: 9,
                machine: SanitizedText("127.0.0.1"),
                isInbound: true
            )

            let failure = await #expect(throws: DialError.self) { _ = try await tools.dial(route) }
            #expect(failure?.reason == .refused)
        }
    }

    @Test func `the route of an app has its address and interface and needs an approval`() {
        let now = Date(timeIntervalSince1970: 0)
        let near = DebugApp(id: 1, peer: .ipv4(0x0A00_0001, port: 5_000), connectedAt: now).route
        #expect(near.address == "10.0.0.1")
        #expect(near.interface == nil)

        let link = UInt128(0xFE80) << 112 | 5
        let scoped = DebugApp(id: 2, peer: .ipv6(link, port: 5_000, scope: 1), connectedAt: now).route
        #expect(scoped.address == "fe80::5")
        #expect(scoped.interface == "lo")
        #expect(scoped.interfaceIndex == 1)
        for route in [near, scoped] { #expect(EndpointRoute(.network(route)).approval == .pending) }
    }
}

/// The broker's end of a stream to the tools of an app.
private final class ToolStream {
    private let stream: SocketStream
    private var lastID = 0

    init(_ connection: consuming Connection) {
        stream = SocketStream(owning: Descriptor(owning: connection.release().number))
    }

    func request(_ method: String, _ params: JSONObject = [:]) async throws -> JSON {
        lastID += 1
        let request: JSON = [
            "jsonrpc": "2.0", "id": .number(JSONNumber(lastID)), "method": .string(method), "params": .object(params),
        ]
        try await stream.send(request.bytes + [UInt8(ascii: "\n")])
        var line: [UInt8] = []
        while line.last != UInt8(ascii: "\n") {
            let byte = try await stream.receiveSome(atMost: 1)
            guard !byte.isEmpty else { throw TestSupportError("the stream to the tools ended") }
            line += byte
        }
        return try JSON(parsing: line)
    }

    func call(_ tool: String, _ arguments: JSONObject = [:]) async throws -> JSON {
        let response = try await request("tools/call", ["name": .string(tool), "arguments": .object(arguments)])
        return try #require(response["result"], "\(response.text)")
    }

    func text(_ tool: String, _ arguments: JSONObject = [:]) async throws -> String {
        let result = try await call(tool, arguments)
        return try #require(result["content"]?.array?.first?["text"]?.string, "\(result.text)")
    }
}
