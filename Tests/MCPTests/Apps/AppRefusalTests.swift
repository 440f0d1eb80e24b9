import JSON
import Model
import Testing

@testable import MCP

/// What a caller is told of a call that came to nothing.
@Suite struct AppRefusalTests {
    private static func text(_ result: JSONObject) -> String {
        result["content"]?.array?.first?["text"]?.string ?? ""
    }

    @Test(arguments: [-32_601, -32_602]) func `a tool that the app does not have is said to be none of its tools`(
        code: Int
    ) async throws {
        let app = ScriptedApp.appReveal { _ in .error(code, "Method not found") }
        let rig = DeskRig(app)
        let shop = try #require(await rig.appear())

        let unknown = await rig.call(ToolCall("fly\u{1B}", of: shop), of: rig.owner)
        let known = await rig.call(ToolCall("tap", of: shop), of: rig.owner)

        #expect(Self.text(unknown).hasPrefix("\(shop.id) has no tool \"fly\u{FFFD}\""))
        #expect(Self.text(unknown).contains("endpoint_tools"))
        #expect(Self.text(unknown).contains("`patchbay tools \(shop.id)`"))
        #expect(Self.text(unknown).contains("Method not found"))
        #expect(unknown["isError"] == true && unknown["_meta"] == ["patchbay/failure": "refused"])
        #expect(Self.text(known) == "\(shop.id) refused the call (error \(code)): Method not found")
    }

    @Test func `a name that an app does not have is answered with the nearest ones, wherever it is called`()
        async throws
    {
        let rig = DeskRig(ScriptedApp.appReveal { _ in .error(-32_602, "Unknown tool") })
        let shop = try #require(await rig.appear())
        let request = MCPRequest("tools/call", ["name": "tapp", "arguments": [:]])

        let agent = await rig.call(ToolCall("tapp", of: shop), of: rig.owner)
        let guest = await #expect(throws: RPCError.self) {
            try await AppMCPServer(shop.id, desk: rig.desk).answer(request, of: rig.owner)
        }
        let alias = ToolNamespace.alias(of: shop.id)
        let together = await #expect(throws: RPCError.self) {
            let request = MCPRequest("tools/call", ["name": .string("\(alias)__tapp"), "arguments": [:]])
            _ = try await AggregateMCPServer(desk: rig.desk).answer(request, of: rig.owner)
        }

        #expect(Self.text(agent).contains("; the nearest names are tap;"), "\(Self.text(agent))")
        #expect(guest?.code == -32_602 && guest?.message == "Unknown tool; the nearest names are tap")
        #expect(together?.message == "Unknown tool; the nearest names are \(alias)__tap")
    }

    @Test func `a result that says there is no such tool has the nearest names, too`() async throws {
        let result: JSONObject = ["content": [["type": "text", "text": "Unknown tool: tapp"]], "isError": true]
        let rig = DeskRig(ScriptedApp.appReveal { _ in .result(.object(result)) })
        let shop = try #require(await rig.appear())

        let wrong = await rig.call(ToolCall("tapp", of: shop), of: rig.owner)
        let right = await rig.call(ToolCall("tap", of: shop), of: rig.owner)

        #expect(wrong["content"]?.array?.count == 2 && right == result)
        #expect(wrong["content"]?.array?.last?["text"]?.string?.hasSuffix("the nearest names are tap") == true)
    }

    @Test func `arguments as a text reach an app as the object that they hold`() async throws {
        let app = ScriptedApp.appReveal { _ in .result(["content": []]) }
        let rig = DeskRig(app)
        let shop = try #require(await rig.appear())
        let request = MCPRequest("tools/call", ["name": "tap", "arguments": #"{"id": "buy"}"#])

        _ = try await AppMCPServer(shop.id, desk: rig.desk).answer(request, of: rig.owner)

        #expect(app.calls.last?.body["params"]?["arguments"] == ["id": "buy"])
    }

    @Test func `another error of the app's says nothing about its tools`() async throws {
        let rig = DeskRig(ScriptedApp.appReveal { _ in .error(-32_000, "starting") })
        let shop = try #require(await rig.appear())
        _ = try await rig.desk.tools(of: shop, for: rig.owner)

        let result = await rig.call(ToolCall("fly", of: shop), of: rig.owner)

        #expect(Self.text(result) == "\(shop.id) refused the call (error -32000): starting")
    }

    @Test(arguments: [
        (ScriptedApp.Reply.http(500, [], "database\n\u{1B}locked"), "status 500, \"database"),
        (.http(503, [], ""), "status 503"), (.http(200, [], "oops"), "JSON"), (.http(200, [], ""), "no answer"),
    ])
    func `an answer that cannot be used is one to a call that was delivered`(
        reply: ScriptedApp.Reply,
        words: String
    ) async throws {
        let rig = DeskRig(ScriptedApp.appReveal { _ in reply })
        let shop = try #require(await rig.appear())

        let result = await rig.call(ToolCall("tap", of: shop), of: rig.owner)

        #expect(Self.text(result).contains(words))
        #expect(Self.text(result).contains("delivered, result unknown"))
        #expect(!Self.text(result).contains("\u{1B}"))
    }

    @Test func `an app that does not say what it is has got no call`() async throws {
        let app = ScriptedApp { _ in .http(500, [], "no") }
        let rig = DeskRig(app) { $0.wait = .milliseconds(50) }
        let shop = try #require(await rig.appear())

        let result = await rig.call(ToolCall("tap", of: shop), of: rig.owner)

        #expect(app.calls.isEmpty)
        #expect(!Self.text(result).contains("delivered") && !Self.text(result).contains("took the call"))
    }
}
