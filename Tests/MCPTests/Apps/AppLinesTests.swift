import JSON
import Model
import TestSupport
import Synchronization
import Testing

@testable import MCP

/// Servers that take a message a line on one stream.
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

    @Test func `a server in lines is greeted once, and called on that stream from then on`() async throws {
        let app = ScriptedLines.legacy { Self.says("did \(Self.argument($0))") }
        let rig = DeskRig(app)
        let shop = try #require(await rig.appear(kind: .mcp, source: .bonjour))

        for n in ["1", "2", "3"] {
            #expect(Self.text(await rig.call(Self.call(n, of: shop), of: rig.owner)) == "did \(n)")
        }

        #expect(app.dials == 1)
        #expect(
            app.messages.map { $0["method"]?.string } == [
                "server/discover", "initialize", "notifications/initialized", "tools/call", "tools/call", "tools/call",
            ]
        )
    }

    @Test func `one of the stateless era is not greeted, and told what is not wanted any more`() async throws {
        let app = ScriptedLines { message in
            switch message["method"]?.string {
            case "server/discover":
                .result(["supportedVersions": ["2026-07-28"], "capabilities": ["tools": [:]]])
            default: .silence
            }
        }
        let rig = DeskRig(app) { $0.silence = .milliseconds(100) }
        let shop = try #require(await rig.appear(kind: .mcp, source: .bonjour))
        try await rig.run {
            let result = await rig.call(Self.call(of: shop), of: rig.owner)

            #expect(Self.code(result) == "too-slow")
            try await eventually("the call is cancelled") { app.count(of: "notifications/cancelled") == 1 }
            #expect(app.messages.last?["params"]?["requestId"] == app.messages.dropLast().last?["id"])
            #expect(app.count(of: "initialize") == 0)
            #expect(app.messages[1]["params"]?["_meta"]?["io.modelcontextprotocol/protocolVersion"] == "2026-07-28")
        }
    }

    @Test func `a server that is written down is found out to take lines`() async throws {
        let app = ScriptedLines.legacy { _ in Self.says("x") }
        let rig = DeskRig(app)
        let shop = try #require(await rig.appear(kind: .mcp, source: .config))

        #expect(Self.text(await rig.call(Self.call(of: shop), of: rig.owner)) == "x")
    }

    @Test func `nobody says lines to what has shown that it speaks HTTP`() async throws {
        let app = ScriptedApp { _ in .http(404, [], "Not Found") }
        let rig = DeskRig(app)
        let shop = try #require(await rig.appear(kind: .mcp))

        #expect(Self.code(await rig.call(Self.call(of: shop), of: rig.owner)) == "no-tools")
        #expect(app.requests.allSatisfy { $0.head.hasPrefix("POST ") })
    }

    @Test func `one that Bonjour knows and that speaks HTTP is found out, too`() async throws {
        let app = ScriptedApp { request in
            request.method == "initialize"
                ? .result(["protocolVersion": "2025-06-18", "capabilities": [:], "serverInfo": [:]])
                : .result(["content": []])
        }
        app.answersLines()
        let rig = DeskRig(app)
        let shop = try #require(await rig.appear(kind: .mcp, source: .bonjour))

        #expect(await rig.call(Self.call(of: shop), of: rig.owner)["isError"] == nil)
    }

    @Test func `answers find their requests in any order`() async throws {
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
        let rig = DeskRig(app)
        let shop = try #require(await rig.appear(kind: .mcp, source: .bonjour))

        async let one = rig.call(Self.call("1", of: shop), of: rig.owner)
        try await eventually("the first is there") { app.count(of: "tools/call") == 1 }
        async let two = rig.call(Self.call("2", of: shop), of: rig.owner)

        #expect(await Self.text(one) == "one")
        #expect(await Self.text(two) == "two")
        #expect(app.dials == 1)
    }

    @Test func `who reads for all and is called off leaves the reading to another`() async throws {
        let app = ScriptedLines.legacy { message in
            Self.argument(message) == "last" ? Self.says("there") : .silence
        }
        let rig = DeskRig(app)
        let shop = try #require(await rig.appear(kind: .mcp, source: .bonjour))
        try await rig.run {
            let reader = Task { await rig.call(Self.call("never", of: shop), of: rig.owner) }
            try await eventually("it waits") { app.count(of: "tools/call") == 1 }
            let other = Task { await rig.call(Self.call("late", of: shop), of: rig.owner) }
            try await eventually("both wait") { app.count(of: "tools/call") == 2 }
            reader.cancel()
            _ = await reader.value

            #expect(Self.text(await rig.call(Self.call("last", of: shop), of: rig.owner)) == "there")
            let id = try #require(app.messages.filter { $0["method"] == "tools/call" }[1]["id"])
            app.say(#"{"jsonrpc":"2.0","id":\#(id.text),"result":{"content":[{"type":"text","text":"late"}]}}"# + "\n")
            #expect(Self.text(await other.value) == "late")
        }
    }

    @Test func `progress goes to whoever asked for it, and log messages only where it is clear whose they are`()
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
        let rig = DeskRig(app)
        let shop = try #require(await rig.appear(kind: .mcp, source: .bonjour))
        let heard = Mutex<[String]>([])

        _ = await rig.call(
            ToolCall("tap", of: shop) { notification in heard.withLock { $0.append(notification.method) } },
            of: rig.owner
        )

        #expect(heard.withLock { $0 } == ["notifications/progress", "notifications/message"])
    }

    @Test func `a stream that ended between two calls is another one for the next`() async throws {
        let app = ScriptedLines.legacy { _ in Self.says("x") }
        let rig = DeskRig(app)
        let shop = try #require(await rig.appear(kind: .mcp, source: .bonjour))
        _ = await rig.call(Self.call(of: shop), of: rig.owner)

        app.hangUp()
        let result = await rig.call(Self.call(of: shop), of: rig.owner)

        #expect(Self.text(result) == "x")
        #expect(app.dials == 2)
        #expect(app.count(of: "initialize") == 2)
    }

    @Test(arguments: [("tap", 1), ("look", 2)])
    func `what was delivered before the end is sent again only if it may be`(tool: String, times: Int) async throws {
        let count = Mutex(0)
        let app = ScriptedLines.legacy { _ in
            count.withLock {
                $0 += 1
                return $0
            } == 1 ? .end : Self.says("again")
        }
        let rig = DeskRig(app)
        let shop = try #require(await rig.appear(kind: .mcp, source: .bonjour))
        _ = try await rig.desk.tools(of: shop, for: rig.owner)

        let result = await rig.call(Self.call("", tool, of: shop), of: rig.owner)

        #expect(app.count(of: "tools/call") == times)
        #expect(Self.code(result) == (times == 1 ? "lost-after-delivery" : nil))
    }

    @Test func `a call waits for a server that is away, and its greeting comes first`() async throws {
        let app = ScriptedLines.legacy { _ in Self.says("back") }
        let rig = DeskRig(app)
        let shop = try #require(await rig.appear(kind: .mcp, source: .bonjour))
        _ = await rig.call(Self.call(of: shop), of: rig.owner)
        app.set(isUp: false)
        app.hangUp()

        async let result = rig.call(Self.call(of: shop), of: rig.owner)
        try await eventually("it is dialled") { app.dials >= 3 }
        app.set(isUp: true)

        #expect(await Self.text(result) == "back")
    }

    @Test(arguments: [
        ("[1]", "JSON-RPC"), ("log: started", "JSON"), ("{", "JSON"),
    ])
    func `a line that is no message is told as what it is, and the stream is left`(line: String, word: String)
        async throws
    {
        let app = ScriptedLines.legacy { Self.argument($0) == "x" ? .lines([line]) : Self.says("fine") }
        let rig = DeskRig(app)
        let shop = try #require(await rig.appear(kind: .mcp, source: .bonjour))

        let result = await rig.call(Self.call("x", of: shop), of: rig.owner)

        #expect(Self.code(result) == "unclear")
        #expect(Self.text(result).contains(word))
        #expect(Self.text(await rig.call(Self.call(of: shop), of: rig.owner)) == "fine")
        #expect(app.dials == 2)
    }

    @Test func `who is turned away when it greets does not knock again`() async throws {
        let app = ScriptedLines { message in
            message["method"] == "initialize" ? .end : .error(-32_601, "Method not found")
        }
        let rig = DeskRig(app)
        let shop = try #require(await rig.appear(kind: .mcp, source: .bonjour))

        let result = await rig.call(Self.call(of: shop), of: rig.owner)

        #expect(Self.text(result).contains("as soon as it is greeted"))
        #expect(app.dials == 1)
    }

    @Test func `megabytes go both ways at once`() async throws {
        let app = ScriptedLines.legacy { message in Self.says(Self.argument(message)) }
        let rig = DeskRig(app)
        let shop = try #require(await rig.appear(kind: .mcp, source: .bonjour))
        let texts = (0..<4).map { String(repeating: "\($0)", count: 1_000_000) }

        let answers = await withTaskGroup(of: String.self) { group in
            for text in texts {
                group.addTask { Self.text(await rig.call(Self.call(text, of: shop), of: rig.owner)) }
            }
            return await group.reduce(into: Set<String>()) { $0.insert($1) }
        }

        #expect(answers == Set(texts))
    }

    @Test func `what such a server tells of its changes is heard while somebody listens`() async throws {
        let app = ScriptedLines.legacy { _ in Self.says("x") }
        let rig = DeskRig(app)
        let shop = try #require(await rig.appear(kind: .mcp, source: .bonjour))
        let server = AppMCPServer(shop.id, desk: rig.desk)
        try await rig.run {
            _ = try await server.answer(MCPRequest("tools/list"), of: rig.owner)
            let changes = server.changes(for: rig.owner)
            try await eventually("its list is asked for") { app.count(of: "tools/list") >= 2 }

            app.say(#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"# + "\n")

            for await change in changes {
                #expect(change == .tools)
                break
            }
            // And whoever listens does not keep others from being answered.
            #expect(Self.text(await rig.call(Self.call(of: shop), of: rig.owner)) == "x")
        }
    }
}
