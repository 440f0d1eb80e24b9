import Model
import Testing

@testable import Apps

/// MCP 2026-07-28: the arguments of apps' tools that are declared with `x-mcp-header`.
@Suite struct AppParameterHeaderTests {
    private static let schema: JSON = [
        "type": "object",
        "properties": [
            "region": ["type": "string", "x-mcp-header": "Region"],
            "where": ["type": "object", "properties": ["level": ["type": "integer", "x-mcp-header": "Level"]]],
            "on": ["type": "boolean", "x-mcp-header": "On"],
        ],
    ]
    private static let arguments: JSON = ["region": "Zürich", "where": ["level": 42], "on": .null]

    @Test func `an app's declarations apply once its tools are listed, and the app is not asked for them`() async throws
    {
        let app = ScriptedApp { request in
            switch request.method {
            case "initialize":
                .result(["protocolVersion": "2025-06-18", "capabilities": ["tools": [:]], "serverInfo": ["name": "x"]])
            case "tools/list": .result(["tools": [["name": "tap", "inputSchema": Self.schema]]])
            case "tools/call": .result(["content": []])
            default: .error(-32_601, "no")
            }
        }
        let fixture = AppProxyFixture(app)
        let shop = try #require(await fixture.appear(kind: .mcp))
        let handler = AppRequestHandler(shop.id, proxy: fixture.proxy)
        func isRefused(_ name: String = "tap") async -> Bool {
            await handler.parameterHeaders(of: name, for: fixture.owner).mismatch(with: Self.arguments) { _ in [] }
                != nil
        }

        #expect(await !isRefused())
        #expect(app.dials.isEmpty)
        _ = try await handler.answer(MCPRequest("tools/list"), of: fixture.owner)
        #expect(await isRefused())
        #expect(await !isRefused("other"))
        let all = AggregateRequestHandler(proxy: fixture.proxy)
        let listed = try #require(
            try await all.answer(MCPRequest("tools/list"), of: fixture.owner)["tools"]?.array?.first
        )
        let headers = await all.parameterHeaders(of: listed["name"]?.string ?? "", for: fixture.owner)
        #expect(headers.mismatch(with: Self.arguments) { _ in [] } != nil)
    }
}
