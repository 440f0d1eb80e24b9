import AccessControl
import Model
import Synchronization
import Testing

@testable import Apps

/// Calls with arguments of another type than the schema names, but with one meaning.
@Suite struct ArgumentConversionTests {
    private static let schema: JSONObject = [
        "type": "object",
        "properties": [
            "id": ["type": "string"], "limit": ["type": "integer", "minimum": 1],
            "title": ["type": "string", "nullable": true],
            "points": ["type": "array", "items": ["type": "object"]], "mode": ["type": "string", "enum": ["a", "b"]],
            "count": ["anyOf": [["type": "integer"], ["type": "null"]]],
        ], "required": ["id"],
    ]

    private static func app(_ schema: @escaping @Sendable () -> JSONObject = { schema }) -> ScriptedApp {
        let app = ScriptedApp.appReveal()
        return ScriptedApp { request in
            guard request.method == "tools/list" else { return app.reply(to: request) }
            return .result(["tools": [["name": "tap", "inputSchema": .object(schema())]]])
        }
    }

    @Test(
        arguments: [
            (["id": "1", "limit": .null, "mode": .null], ["id": "1"], "null left out"),
            (["id": 5], ["id": "5"], "number to text"),
            (["id": "1", "limit": "5"], ["id": "1", "limit": 5], "text to integer"),
            (["id": "1", "count": "5"], ["id": "1", "count": 5], "text to integer"),
            (["id": 1, "points": #"[{"x": 1}]"#], ["id": "1", "points": [["x": 1]]], "number to text, text to list"),
        ] as [(JSONObject, JSON, String)]
    )
    func `the app gets converted arguments, and the audit log has the conversions`(
        arguments: JSONObject,
        delivered: JSON,
        conversions: String
    ) async throws {
        let app = Self.app()
        let fixture = AppProxyFixture(app)
        let shop = try #require(await fixture.appear())
        _ = try await fixture.proxy.tools(of: shop, for: fixture.owner)

        let agent = await fixture.call(ToolCall("tap", of: shop, arguments: arguments), of: fixture.owner)
        let direct = try await AppRequestHandler(shop.id, proxy: fixture.proxy).answer(
            MCPRequest("tools/call", ["name": "tap", "arguments": .object(arguments)]),
            of: fixture.owner
        )

        #expect(agent["isError"] == nil && direct["isError"] == nil)
        #expect(app.calls.map { $0.body["params"]?["arguments"] } == [delivered, delivered])
        let outcome = "answered; arguments converted: \(conversions)"
        #expect(fixture.authorizer.events.map(\.outcome) == [outcome, outcome])
        #expect(app.requests.count { $0.method == "tools/list" } == 1)
    }

    @Test(
        arguments: [
            ["id": .null], ["id": true], ["id": "1", "limit": "0"], ["id": "1", "limit": "5.5"],
            ["id": "1", "points": "{}"],
        ] as [JSONObject]
    )
    func `arguments without one meaning are refused unchanged`(arguments: JSONObject) async throws {
        let app = Self.app()
        let fixture = AppProxyFixture(app)
        let shop = try #require(await fixture.appear())
        _ = try await fixture.proxy.tools(of: shop, for: fixture.owner)

        let result = await fixture.call(ToolCall("tap", of: shop, arguments: arguments), of: fixture.owner)

        #expect(result["_meta"]?["patchbay/failure"] == "invalid-arguments" && app.calls.isEmpty)
        #expect(fixture.authorizer.events.map(\.outcome) == ["invalid-arguments"])
    }

    @Test func `valid arguments are delivered as they are`() async throws {
        let app = Self.app()
        let fixture = AppProxyFixture(app)
        let shop = try #require(await fixture.appear())
        _ = try await fixture.proxy.tools(of: shop, for: fixture.owner)
        let arguments: JSONObject = ["id": "007", "title": .null, "count": .null, "other": "5"]

        _ = await fixture.call(ToolCall("tap", of: shop, arguments: arguments), of: fixture.owner)

        #expect(app.calls.map { $0.body["params"]?["arguments"] } == [.object(arguments)])
        #expect(fixture.authorizer.events.map(\.outcome) == ["answered"])
    }

    @Test func `arguments are converted by the schema of the running launch`() async throws {
        let isRebuilt = Mutex(false)
        let app = Self.app { isRebuilt.withLock { $0 } ? ["properties": ["id": ["type": "integer"]]] : Self.schema }
        let fixture = AppProxyFixture(app)
        let shop = try #require(await fixture.appear())
        _ = try await fixture.proxy.tools(of: shop, for: fixture.owner)
        isRebuilt.withLock { $0 = true }
        await fixture.proxy.endLaunch(of: shop.id)

        _ = await fixture.call(ToolCall("tap", of: shop, arguments: ["id": 5]), of: fixture.owner)

        #expect(app.calls.map { $0.body["params"]?["arguments"] } == [["id": 5]])
    }

    @Test func `arguments that are null or a text are sent as an object`() async throws {
        let app = Self.app { ["properties": [:]] }
        let fixture = AppProxyFixture(app)
        let shop = try #require(await fixture.appear())
        let handler = AppRequestHandler(shop.id, proxy: fixture.proxy)

        for arguments in [.null, "{}"] as [JSON] {
            _ = try await handler.answer(
                MCPRequest("tools/call", ["name": "tap", "arguments": arguments]),
                of: fixture.owner
            )
        }

        #expect(app.calls.map { $0.body["params"]?["arguments"] } == [[:], [:]])
    }
}
