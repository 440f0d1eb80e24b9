import Model
import Synchronization
import TestSupport
import Testing

@testable import Apps

/// Servers with one message per line on one stream.
@Suite struct AppLinesTests {
    private static func says(_ text: String) -> ScriptedLines.Reply {
        .result(["content": [["type": "text", "text": .string(text)]]])
    }

    private static func text(_ result: JSONObject) -> String { result["content"]?.array?.first?["text"]?.string ?? "" }
    private static func code(_ result: JSONObject) -> JSON? { result["_meta"]?["patchbay/failure"] }
    private static func argument(_ message: JSON) -> String { message["params"]?["arguments"]?["n"]?.string ?? "" }

    private static func call(_ n: String = "", _ tool: String = "tap", of shop: Endpoint) -> ToolCall {
        ToolCall(tool, of: shop, arguments: ["n": .string(n)])
    }

    @Test func `a line-based server gets one handshake, and all calls use that stream`() async throws {
        let app = ScriptedLines.legacy { Self.says("did \(Self.argument($0))") }
        let fixture = AppProxyFixture(app)
        let shop = try #require(await fixture.appear(kind: .mcp, source: .bonjour))

        for n in ["1", "2", "3"] {
            #expect(Self.text(await fixture.call(Self.call(n, of: shop), of: fixture.owner)) == "did \(n)")
        }

        #expect(app.dials == 1)
        #expect(
            app.messages.map { $0["method"]?.string } == [
                "server/discover", "initialize", "notifications/initialized", "tools/call", "tools/call", "tools/call",
            ]
        )
    }

    @Test func `a stateless line-based server gets no initialize, and a cancellation after a timeout`() async throws {
        let app = ScriptedLines { message in
            switch message["method"]?.string {
            case "server/discover":
                .result(["supportedVersions": ["2026-07-28"], "capabilities": ["tools": [:]]])
            default: .silence
            }
        }
        let fixture = AppProxyFixture(app) { $0.response.idle = .milliseconds(100) }
        let shop = try #require(await fixture.appear(kind: .mcp, source: .bonjour))
        try await fixture.run {
            let result = await fixture.call(Self.call(of: shop), of: fixture.owner)

            #expect(Self.code(result) == "timeout")
            try await eventually("the call is cancelled") { app.count(of: "notifications/cancelled") == 1 }
            #expect(app.messages.last?["params"]?["requestId"] == app.messages.dropLast().last?["id"])
            #expect(app.count(of: "initialize") == 0)
            #expect(app.messages[1]["params"]?["_meta"]?["io.modelcontextprotocol/protocolVersion"] == "2026-07-28")
        }
    }

    @Test func `a configured line-based server is detected`() async throws {
        let app = ScriptedLines.legacy { _ in Self.says("x") }
        let fixture = AppProxyFixture(app)
        let shop = try #require(await fixture.appear(kind: .mcp, source: .config))

        #expect(Self.text(await fixture.call(Self.call(of: shop), of: fixture.owner)) == "x")
    }

    @Test func `a server that has answered in HTTP gets no lines`() async throws {
        let app = ScriptedApp { _ in .http(404, [], "Not Found") }
        let fixture = AppProxyFixture(app)
        let shop = try #require(await fixture.appear(kind: .mcp))

        #expect(Self.code(await fixture.call(Self.call(of: shop), of: fixture.owner)) == "not-mcp")
        #expect(app.requests.allSatisfy { $0.head.hasPrefix("POST ") })
    }

    @Test func `a Bonjour server that speaks HTTP is detected`() async throws {
        let app = ScriptedApp { request in
            request.method == "initialize"
                ? .result(["protocolVersion": "2025-06-18", "capabilities": [:], "serverInfo": [:]])
                : .result(["content": []])
        }
        app.answersLines()
        let fixture = AppProxyFixture(app)
        let shop = try #require(await fixture.appear(kind: .mcp, source: .bonjour))

        #expect(await fixture.call(Self.call(of: shop), of: fixture.owner)["isError"] == nil)
    }

    @Test func `responses are matched to requests in any order`() async throws {
        let first = Mutex<JSON?>(nil)
        let app = ScriptedLines.legacy { message in
            if Self.argument(message) == "1" {
                first.withLock { $0 = message["id"] }
                return .silence
            }
            let id = first.withLock { $0?.text ?? "" }
            let late = #"{"jsonrpc":"2.0","id":\#(id),"result":{"content":[{"type":"text","text":"one"}]}}"#
            let own = #"{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"text","text":"two"}]}}"#
            return .lines([own, late])
        }
        let fixture = AppProxyFixture(app)
        let shop = try #require(await fixture.appear(kind: .mcp, source: .bonjour))

        async let one = fixture.call(Self.call("1", of: shop), of: fixture.owner)
        try await eventually("the first call has arrived") { app.count(of: "tools/call") == 1 }
        async let two = fixture.call(Self.call("2", of: shop), of: fixture.owner)

        #expect(await Self.text(one) == "one")
        #expect(await Self.text(two) == "two")
        #expect(app.dials == 1)
    }

    @Test func `a cancelled reader hands over reading to another request`() async throws {
        let app = ScriptedLines.legacy { message in Self.argument(message) == "last" ? Self.says("there") : .silence }
        let fixture = AppProxyFixture(app)
        let shop = try #require(await fixture.appear(kind: .mcp, source: .bonjour))
        try await fixture.run {
            let reader = Task { await fixture.call(Self.call("never", of: shop), of: fixture.owner) }
            try await eventually("the call is in flight") { app.count(of: "tools/call") == 1 }
            let other = Task { await fixture.call(Self.call("late", of: shop), of: fixture.owner) }
            try await eventually("both calls are in flight") { app.count(of: "tools/call") == 2 }
            reader.cancel()
            _ = await reader.value

            #expect(Self.text(await fixture.call(Self.call("last", of: shop), of: fixture.owner)) == "there")
            let id = try #require(app.messages.filter { $0["method"] == "tools/call" }[1]["id"])
            app.send(#"{"jsonrpc":"2.0","id":\#(id.text),"result":{"content":[{"type":"text","text":"late"}]}}"# + "\n")
            #expect(Self.text(await other.value) == "late")
        }
    }

    @Test func `progress goes to its request, and log messages go to the only request in flight`()
        async throws
    {
        let app = ScriptedLines.legacy { _ in
            .lines([
                #"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":ID,"progress":1}}"#,
                #"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":99,"progress":2}}"#,
                #"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}"#,
                #"{"jsonrpc":"2.0","id":ID,"result":{"content":[]}}"#,
            ])
        }
        let fixture = AppProxyFixture(app)
        let shop = try #require(await fixture.appear(kind: .mcp, source: .bonjour))
        let received = Mutex<[String]>([])

        _ = await fixture.call(
            ToolCall("tap", of: shop) { notification in received.withLock { $0.append(notification.method) } },
            of: fixture.owner
        )

        #expect(received.withLock { $0 } == ["notifications/progress", "notifications/message"])
    }

    @Test func `a stream that ended between two calls is replaced`() async throws {
        let app = ScriptedLines.legacy { _ in Self.says("x") }
        let fixture = AppProxyFixture(app)
        let shop = try #require(await fixture.appear(kind: .mcp, source: .bonjour))
        _ = await fixture.call(Self.call(of: shop), of: fixture.owner)

        app.closeStreams()
        let result = await fixture.call(Self.call(of: shop), of: fixture.owner)

        #expect(Self.text(result) == "x")
        #expect(app.dials == 2)
        #expect(app.count(of: "initialize") == 2)
    }

    @Test(arguments: [("tap", 1), ("look", 2)])
    func `a request that was delivered before the end is repeated only if its tool allows that`(
        tool: String,
        times: Int
    ) async throws {
        let count = Mutex(0)
        let app = ScriptedLines.legacy { _ in
            count.withLock {
                $0 += 1
                return $0
            } == 1 ? .end : Self.says("again")
        }
        let fixture = AppProxyFixture(app)
        let shop = try #require(await fixture.appear(kind: .mcp, source: .bonjour))
        _ = try await fixture.proxy.tools(of: shop, for: fixture.owner)

        let result = await fixture.call(Self.call("", tool, of: shop), of: fixture.owner)

        #expect(app.count(of: "tools/call") == times)
        #expect(Self.code(result) == (times == 1 ? "response-lost" : nil))
    }

    @Test func `a call waits for an offline server, and the handshake comes first`() async throws {
        let app = ScriptedLines.legacy { _ in Self.says("back") }
        let fixture = AppProxyFixture(app)
        let shop = try #require(await fixture.appear(kind: .mcp, source: .bonjour))
        _ = await fixture.call(Self.call(of: shop), of: fixture.owner)
        app.set(isUp: false)
        app.closeStreams()

        async let result = fixture.call(Self.call(of: shop), of: fixture.owner)
        try await eventually("the app is dialled") { app.dials >= 3 }
        app.set(isUp: true)

        #expect(await Self.text(result) == "back")
    }

    @Test(arguments: ["[1]", "log: started"]) func `a line of a log among the messages is skipped`(line: String)
        async throws
    {
        let response = #"{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"text","text":"fine"}]}}"#
        let app = ScriptedLines.legacy { _ in .lines([line, response]) }
        let fixture = AppProxyFixture(app)
        let shop = try #require(await fixture.appear(kind: .mcp, source: .bonjour))

        #expect(Self.text(await fixture.call(Self.call(of: shop), of: fixture.owner)) == "fine")
        #expect(app.dials == 1)
    }

    @Test(arguments: [("{", "JSON"), (#"{"id":1}"#, "JSON-RPC")])
    func `a damaged message is reported, and the stream is closed`(line: String, word: String) async throws {
        let app = ScriptedLines.legacy { Self.argument($0) == "x" ? .lines([line]) : Self.says("fine") }
        let fixture = AppProxyFixture(app)
        let shop = try #require(await fixture.appear(kind: .mcp, source: .bonjour))

        let result = await fixture.call(Self.call("x", of: shop), of: fixture.owner)

        #expect(Self.code(result) == "invalid-response")
        #expect(Self.text(result).contains(word))
        #expect(Self.text(await fixture.call(Self.call(of: shop), of: fixture.owner)) == "fine")
        #expect(app.dials == 2)
    }

    @Test func `a rejected handshake is not retried`() async throws {
        let app = ScriptedLines { message in
            message["method"] == "initialize" ? .end : .error(-32_601, "Method not found")
        }
        let fixture = AppProxyFixture(app)
        let shop = try #require(await fixture.appear(kind: .mcp, source: .bonjour))

        let result = await fixture.call(Self.call(of: shop), of: fixture.owner)

        #expect(Self.text(result).contains("during the handshake"))
        #expect(app.dials == 1)
    }

    @Test func `large messages are exchanged in both directions at once`() async throws {
        let app = ScriptedLines.legacy { message in Self.says(Self.argument(message)) }
        let fixture = AppProxyFixture(app)
        let shop = try #require(await fixture.appear(kind: .mcp, source: .bonjour))
        let texts = (0..<4).map { String(repeating: "\($0)", count: 1_000_000) }

        let answers = await withTaskGroup(of: String.self) { group in
            for text in texts {
                group.addTask { Self.text(await fixture.call(Self.call(text, of: shop), of: fixture.owner)) }
            }
            return await group.reduce(into: Set<String>()) { $0.insert($1) }
        }

        #expect(answers == Set(texts))
    }

    @Test func `changes of a line-based server are received while there are subscribers`() async throws {
        let app = ScriptedLines.legacy { _ in Self.says("x") }
        let fixture = AppProxyFixture(app)
        let shop = try #require(await fixture.appear(kind: .mcp, source: .bonjour))
        let handler = AppRequestHandler(shop.id, proxy: fixture.proxy)
        try await fixture.run {
            _ = try await handler.answer(MCPRequest("tools/list"), of: fixture.owner)
            let changes = handler.changes(for: fixture.owner)
            try await eventually("the tools are listed") { app.count(of: "tools/list") >= 2 }

            app.send(#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"# + "\n")

            for await change in changes {
                #expect(change == .tools)
                break
            }
            // A subscriber does not block the responses of other requests.
            #expect(Self.text(await fixture.call(Self.call(of: shop), of: fixture.owner)) == "x")
        }
    }
}
