import Model
import Testing

@testable import Apps

/// Error texts of failed calls.
@Suite struct AppRefusalTests {
    private static func text(_ result: JSONObject) -> String { result["content"]?.array?.first?["text"]?.string ?? "" }

    @Test(arguments: [-32_601, -32_602]) func `the error for an unknown tool says that the app has no such tool`(
        code: Int
    ) async throws {
        let app = ScriptedApp.appReveal { _ in .error(code, "Method not found") }
        let fixture = AppProxyFixture(app)
        let shop = try #require(await fixture.appear())

        let unknown = await fixture.call(ToolCall("fly\u{1B}", of: shop), of: fixture.owner)
        let known = await fixture.call(ToolCall("tap", of: shop), of: fixture.owner)

        #expect(Self.text(unknown).hasPrefix("\(shop.id) has no tool \"fly\u{FFFD}\""))
        #expect(Self.text(unknown).contains("endpoint_tools"))
        #expect(Self.text(unknown).contains("`patchbay tools \(shop.id)`"))
        #expect(Self.text(unknown).contains("Method not found"))
        #expect(unknown["isError"] == true && unknown["_meta"] == ["patchbay/failure": "refused"])
        #expect(Self.text(known) == "\(shop.id) refused the call (error \(code)): Method not found")
    }

    @Test func `the error for an unknown tool has the nearest names at every address`()
        async throws
    {
        let fixture = AppProxyFixture(ScriptedApp.appReveal { _ in .error(-32_602, "Unknown tool") })
        let shop = try #require(await fixture.appear())
        let request = MCPRequest("tools/call", ["name": "tapp", "arguments": [:]])

        let agent = await fixture.call(ToolCall("tapp", of: shop), of: fixture.owner)
        let guest = await #expect(throws: RPCError.self) {
            try await AppRequestHandler(shop.id, proxy: fixture.proxy).answer(request, of: fixture.owner)
        }
        let alias = ToolNamespace.alias(of: shop.id)
        let together = await #expect(throws: RPCError.self) {
            let request = MCPRequest("tools/call", ["name": .string("\(alias)__tapp"), "arguments": [:]])
            _ = try await AggregateRequestHandler(proxy: fixture.proxy).answer(request, of: fixture.owner)
        }

        #expect(Self.text(agent).contains("; the nearest names are tap;"), "\(Self.text(agent))")
        #expect(guest?.code == -32_602 && guest?.message == "Unknown tool; the nearest names are tap")
        #expect(together?.message == "Unknown tool; the nearest names are \(alias)__tap")
    }

    @Test func `a failed result for an unknown tool has the nearest names`() async throws {
        let result: JSONObject = ["content": [["type": "text", "text": "Unknown tool: tapp"]], "isError": true]
        let fixture = AppProxyFixture(ScriptedApp.appReveal { _ in .result(.object(result)) })
        let shop = try #require(await fixture.appear())

        let wrong = await fixture.call(ToolCall("tapp", of: shop), of: fixture.owner)
        let right = await fixture.call(ToolCall("tap", of: shop), of: fixture.owner)

        #expect(wrong["content"]?.array?.count == 2 && right == result)
        #expect(wrong["content"]?.array?.last?["text"]?.string?.hasSuffix("the nearest names are tap") == true)
    }

    @Test func `arguments in a JSON text are sent to the app as an object`() async throws {
        let app = ScriptedApp.appReveal { _ in .result(["content": []]) }
        let fixture = AppProxyFixture(app)
        let shop = try #require(await fixture.appear())
        let request = MCPRequest("tools/call", ["name": "tap", "arguments": #"{"id": "buy"}"#])

        _ = try await AppRequestHandler(shop.id, proxy: fixture.proxy).answer(request, of: fixture.owner)

        #expect(app.calls.last?.body["params"]?["arguments"] == ["id": "buy"])
    }

    @Test func `an unrelated error of the app has no tool suggestions`() async throws {
        let fixture = AppProxyFixture(ScriptedApp.appReveal { _ in .error(-32_000, "starting") })
        let shop = try #require(await fixture.appear())
        _ = try await fixture.proxy.tools(of: shop, for: fixture.owner)

        let result = await fixture.call(ToolCall("fly", of: shop), of: fixture.owner)

        #expect(Self.text(result) == "\(shop.id) refused the call (error -32000): starting")
    }

    @Test(arguments: [
        (ScriptedApp.Reply.http(500, [], "database\n\u{1B}locked"), "status 500, \"database"),
        (.http(503, [], ""), "status 503"), (.http(200, [], "oops"), "JSON"), (.http(200, [], ""), "no answer"),
    ])
    func `the error for an invalid response says that the call was delivered`(
        reply: ScriptedApp.Reply,
        words: String
    ) async throws {
        let fixture = AppProxyFixture(ScriptedApp.appReveal { _ in reply })
        let shop = try #require(await fixture.appear())

        let result = await fixture.call(ToolCall("tap", of: shop), of: fixture.owner)

        #expect(Self.text(result).contains(words))
        #expect(Self.text(result).contains("delivered, result unknown"))
        #expect(!Self.text(result).contains("\u{1B}"))
    }

    @Test func `a call is not delivered without a handshake`() async throws {
        let app = ScriptedApp { _ in .http(500, [], "no") }
        let fixture = AppProxyFixture(app) { $0.wait = .milliseconds(50) }
        let shop = try #require(await fixture.appear())

        let result = await fixture.call(ToolCall("tap", of: shop), of: fixture.owner)

        #expect(app.calls.isEmpty)
        #expect(!Self.text(result).contains("delivered") && !Self.text(result).contains("took the call"))
    }
}
