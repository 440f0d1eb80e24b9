import Model
import Synchronization
import TestSupport
import Testing

@testable import Apps

@Suite struct AppErasTests {
    /// A stateless server that requires every header.
    private static func stateless(_ call: @escaping @Sendable (ScriptedApp.Request) -> ScriptedApp.Reply) -> ScriptedApp
    {
        ScriptedApp { request in
            let meta = request.body["params"]?["_meta"]
            guard request.header("MCP-Protocol-Version") == "2026-07-28",
                request.header("Mcp-Method") == request.method,
                meta?["io.modelcontextprotocol/protocolVersion"] == "2026-07-28",
                meta?["io.modelcontextprotocol/clientCapabilities"]?.object != nil
            else {
                return .http(400, [], #"{"jsonrpc":"2.0","id":1,"error":{"code":-32020,"message":"mismatch"}}"#)
            }
            return switch request.method {
            case "server/discover":
                .result([
                    "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": ["tools": [:]],
                    "ttlMs": 0, "cacheScope": "private",
                    "_meta": ["io.modelcontextprotocol/serverInfo": ["name": "stateless", "version": "1"]],
                ])
            case "tools/list":
                .result([
                    "resultType": "complete", "ttlMs": 5, "cacheScope": "public",
                    "tools": [
                        [
                            "name": "tap",
                            "inputSchema": ["properties": ["where": ["type": "string", "x-mcp-header": "Where"]]],
                        ]
                    ],
                ])
            default: call(request)
            }
        }
    }

    @Test func `a stateless server gets the headers and metadata of its protocol version`() async throws {
        let app = Self.stateless { _ in .result(["resultType": "input_required", "requestState": "s", "content": []]) }
        let fixture = AppProxyFixture(app)
        let shop = try #require(await fixture.appear(kind: .mcp))
        let handler = AppRequestHandler(shop.id, proxy: fixture.proxy)
        let list = try await handler.answer(MCPRequest("tools/list"), of: fixture.owner)

        let result = try await handler.answer(
            MCPRequest(
                "tools/call",
                ["name": "tap", "arguments": ["where": "é"], "_meta": ["com.example/x": 1]],
                capabilities: ["elicitation": [:]]
            ),
            of: fixture.owner
        )

        #expect(list["ttlMs"] == 5)
        #expect(result["resultType"] == "input_required")
        #expect(result["requestState"] == "s")
        let call = try #require(app.calls.first)
        #expect(call.header("Mcp-Name") == "tap")
        #expect(call.header("Mcp-Param-Where") == "=?base64?w6k=?=")
        let meta = call.body["params"]?["_meta"]
        #expect(meta?["com.example/x"] == 1)
        #expect(meta?["io.modelcontextprotocol/clientCapabilities"] == ["elicitation": [:]])
        #expect(!app.requests.contains { $0.method == "initialize" })
        #expect(await handler.description(for: fixture.owner).info["name"] == "stateless")
    }

    /// A session-mode server at `/mcp` only, which can discard its sessions.
    private final class SessionServer: Sendable {
        let session = Mutex(1)
        func forget() { session.withLock { $0 += 1 } }

        func answer(_ request: ScriptedApp.Request) -> ScriptedApp.Reply {
            let current = session.withLock { "session-\($0)" }
            guard request.head.hasPrefix("POST /mcp ") else { return .http(404, [], "Not Found") }
            if request.method == "initialize" {
                let id = request.body["id"] ?? .null
                let result: JSON = [
                    "protocolVersion": "2025-11-25", "capabilities": ["tools": [:], "prompts": [:]],
                    "serverInfo": ["name": "sessionful", "version": "1"], "instructions": "log in first",
                ]
                return .http(
                    200,
                    ["Mcp-Session-Id: \(current)"],
                    JSON.object(["jsonrpc": "2.0", "id": id, "result": result]).text
                )
            }
            guard let shown = request.header("Mcp-Session-Id") else {
                return .http(
                    400,
                    [],
                    #"{"jsonrpc":"2.0","id":"server-error","error":{"code":-32600,"message":"Bad Request: Missing session ID"}}"#
                )
            }
            guard shown == current else {
                return .http(
                    404,
                    [],
                    #"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Session not found"}}"#
                )
            }
            return request.method == "tools/call" ? .result(["content": []]) : .http(202, [], "")
        }
    }

    @Test
    func `a lost session is opened again, and the unprocessed call is repeated`()
        async throws
    {
        let server = SessionServer()
        let app = ScriptedApp { server.answer($0) }
        let fixture = AppProxyFixture(app)
        let shop = try #require(await fixture.appear(kind: .mcp))
        _ = await fixture.call(ToolCall("tap", of: shop), of: fixture.owner)
        server.forget()

        let result = await fixture.call(ToolCall("tap", of: shop), of: fixture.owner)

        #expect(result["isError"] == nil)
        #expect(app.calls.map { $0.header("Mcp-Session-Id") } == ["session-1", "session-1", "session-2"])
        #expect(app.requests.filter { $0.method == "initialize" }.count == 2)
        let description = await AppRequestHandler(shop.id, proxy: fixture.proxy).description(for: fixture.owner)
        #expect(description.instructions == "log in first")
        #expect(description.capabilities["prompts"] != nil)
    }

    @Test func `messages before the response are passed on without the progress token`() async throws {
        let app = ScriptedApp { request in
            guard request.method == "tools/call" else {
                return request.method == "initialize"
                    ? .result(["protocolVersion": "2025-06-18", "capabilities": [:], "serverInfo": ["name": "x"]])
                    : request.method == "ping" ? .result([:]) : .error(-32_601, "no")
            }
            let token = request.body["params"]?["_meta"]?["progressToken"] ?? .null
            return .stream(
                [
                    [
                        "jsonrpc": "2.0", "method": "notifications/progress",
                        "params": ["progressToken": token, "progress": 1],
                    ],
                    [
                        "jsonrpc": "2.0", "method": "notifications/progress",
                        "params": ["progressToken": "foreign", "progress": 2],
                    ],
                    ["jsonrpc": "2.0", "method": "notifications/message", "params": ["level": "info", "data": "hi"]],
                    ["jsonrpc": "2.0", "id": "theirs", "method": "ping"],
                    ["jsonrpc": "2.0", "method": "notifications/tools/list_changed"],
                ],
                then: ["content": []]
            )
        }
        let fixture = AppProxyFixture(app)
        let shop = try #require(await fixture.appear(kind: .mcp))
        let received = Mutex<[RPCNotification]>([])
        try await fixture.run {
            let changes = fixture.proxy.changeMonitor.changes(of: shop.id, for: fixture.owner)

            let result = await fixture.call(
                ToolCall("tap", of: shop) { notification in received.withLock { $0.append(notification) } },
                of: fixture.owner
            )

            #expect(result["isError"] == nil)
            #expect(received.withLock { $0.map(\.method) } == ["notifications/progress", "notifications/message"])
            #expect(received.withLock { $0.first?.params } == ["progress": 1])
            var iterator = changes.makeAsyncIterator()
            #expect(await iterator.next() == .tools)
            try await eventually("the ping is answered") {
                app.requests.contains { $0.body["id"] == "theirs" && $0.body["result"] == [:] }
            }
        }
    }

    @Test func `a kept connection that the app closes does not fail a call`() async throws {
        let app = ScriptedApp.appReveal()
        app.keepConnections(closing: true)
        let fixture = AppProxyFixture(app)
        let shop = try #require(await fixture.appear())

        for number in 1...5 {
            let result = await fixture.call(ToolCall("tap", of: shop), of: fixture.owner)
            #expect(result["isError"] == nil)
            #expect(app.calls.count == number)
        }
    }

    @Test func `a connection that the app keeps open is reused`() async throws {
        let app = ScriptedApp.appReveal()
        app.keepConnections()
        let fixture = AppProxyFixture(app)
        let shop = try #require(await fixture.appear())

        _ = try await fixture.proxy.tools(of: shop, for: fixture.owner)

        for _ in 0..<5 { _ = await fixture.call(ToolCall("get_screen", of: shop), of: fixture.owner) }
        #expect(app.calls.count == 5)
        #expect(app.dials.count == 1)

        // A tool that is not repeatable uses a new connection.
        for _ in 0..<2 { _ = await fixture.call(ToolCall("tap", of: shop), of: fixture.owner) }
        #expect(app.dials.count == 3)
    }

    @Test func `an endpoint without MCP is reported as not speaking MCP`() async throws {
        let app = ScriptedApp { _ in .http(404, [], "<html>") }
        let fixture = AppProxyFixture(app)
        let shop = try #require(await fixture.appear(kind: .mcp))
        let debug = try #require(await fixture.appear("debug", kind: .appDebug))

        #expect(
            await fixture.call(ToolCall("tap", of: shop), of: fixture.owner)["_meta"] == ["patchbay/failure": "not-mcp"]
        )
        let dials = app.dials.count
        #expect(
            await fixture.call(ToolCall("tap", of: debug), of: fixture.owner)["_meta"] == [
                "patchbay/failure": "not-mcp"
            ]
        )
        #expect(app.dials.count == dials)
    }
}
