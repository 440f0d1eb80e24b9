import JSON
import Model
import TestSupport
import Synchronization
import Testing

@testable import MCP

@Suite struct AppErasTests {
    /// A server of the stateless era that wants every header.
    private static func modern(_ call: @escaping @Sendable (ScriptedApp.Request) -> ScriptedApp.Reply) -> ScriptedApp {
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
                    "_meta": ["io.modelcontextprotocol/serverInfo": ["name": "modern", "version": "1"]],
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

    @Test func `a server of the stateless era is spoken to in its words`() async throws {
        let app = Self.modern { _ in .result(["resultType": "input_required", "requestState": "s", "content": []]) }
        let rig = DeskRig(app)
        let shop = try #require(await rig.appear(kind: .mcp))
        let server = AppMCPServer(shop.id, desk: rig.desk)
        let list = try await server.answer(MCPRequest("tools/list"), of: rig.owner)

        let result = try await server.answer(
            MCPRequest(
                "tools/call",
                ["name": "tap", "arguments": ["where": "é"], "_meta": ["com.example/x": 1]],
                capabilities: ["elicitation": [:]]
            ),
            of: rig.owner
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
        #expect(await server.description(for: rig.owner).info["name"] == "modern")
    }

    /// A server with sessions of the handshake's era, at `/mcp` and nowhere else, which forgets them when told to.
    private final class Sessionful: Sendable {
        let session = Mutex(1)
        func forget() { session.withLock { $0 += 1 } }

        func answer(_ request: ScriptedApp.Request) -> ScriptedApp.Reply {
            let current = session.withLock { "session-\($0)" }
            guard request.head.hasPrefix("POST /mcp ") else { return .http(404, [], "Not Found") }
            if request.method == "initialize" {
                let id = request.body["id"] ?? .null
                let result: JSON = [
                    "protocolVersion": "2025-11-25", "capabilities": ["tools": [:], "prompts": [:]],
                    "serverInfo": ["name": "sessionful", "version": "1"], "instructions": "knock first",
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
    func `a session that the server has forgotten is begun anew, and the call is sent again, as it was not heard`()
        async throws
    {
        let server = Sessionful()
        let app = ScriptedApp { server.answer($0) }
        let rig = DeskRig(app)
        let shop = try #require(await rig.appear(kind: .mcp))
        _ = await rig.call(ToolCall("tap", of: shop), of: rig.owner)
        server.forget()

        let result = await rig.call(ToolCall("tap", of: shop), of: rig.owner)

        #expect(result["isError"] == nil)
        #expect(app.calls.map { $0.header("Mcp-Session-Id") } == ["session-1", "session-1", "session-2"])
        #expect(app.requests.filter { $0.method == "initialize" }.count == 2)
        let description = await AppMCPServer(shop.id, desk: rig.desk).description(for: rig.owner)
        #expect(description.instructions == "knock first")
        #expect(description.capabilities["prompts"] != nil)
    }

    @Test func `what comes before the answer on a stream is passed on, without our token`() async throws {
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
        let rig = DeskRig(app)
        let shop = try #require(await rig.appear(kind: .mcp))
        let heard = Mutex<[RPCNotification]>([])
        try await rig.run {
            let changes = rig.desk.changes(of: shop.id, for: rig.owner)

            let result = await rig.call(
                ToolCall("tap", of: shop) { notification in heard.withLock { $0.append(notification) } },
                of: rig.owner
            )

            #expect(result["isError"] == nil)
            #expect(heard.withLock { $0.map(\.method) } == ["notifications/progress", "notifications/message"])
            #expect(heard.withLock { $0.first?.params } == ["progress": 1])
            var iterator = changes.makeAsyncIterator()
            #expect(await iterator.next() == .tools)
            try await eventually("its ping is answered") {
                app.requests.contains { $0.body["id"] == "theirs" && $0.body["result"] == [:] }
            }
        }
    }

    @Test func `a stream that the app closed after all costs nothing`() async throws {
        let app = ScriptedApp.appReveal()
        app.keepStreams(forAWhile: true)
        let rig = DeskRig(app)
        let shop = try #require(await rig.appear())

        for number in 1...5 {
            let result = await rig.call(ToolCall("tap", of: shop), of: rig.owner)
            #expect(result["isError"] == nil)
            #expect(app.calls.count == number)
        }
    }

    @Test func `a stream that the app keeps is used again`() async throws {
        let app = ScriptedApp.appReveal()
        app.keepStreams()
        let rig = DeskRig(app)
        let shop = try #require(await rig.appear())

        _ = try await rig.desk.tools(of: shop, for: rig.owner)

        for _ in 0..<5 { _ = await rig.call(ToolCall("get_screen", of: shop), of: rig.owner) }
        #expect(app.calls.count == 5)
        #expect(app.dials.count == 1)

        // What must not come twice goes over a stream that cannot be closing.
        for _ in 0..<2 { _ = await rig.call(ToolCall("tap", of: shop), of: rig.owner) }
        #expect(app.dials.count == 3)
    }

    @Test func `what speaks no MCP is said to speak none`() async throws {
        let app = ScriptedApp { _ in .http(404, [], "<html>") }
        let rig = DeskRig(app)
        let shop = try #require(await rig.appear(kind: .mcp))
        let debug = try #require(await rig.appear("debug", kind: .appDebug))

        #expect(
            await rig.call(ToolCall("tap", of: shop), of: rig.owner)["_meta"] == ["patchbay/failure": "no-tools"]
        )
        let dials = app.dials.count
        #expect(
            await rig.call(ToolCall("tap", of: debug), of: rig.owner)["_meta"] == ["patchbay/failure": "no-tools"]
        )
        #expect(app.dials.count == dials)
    }
}
