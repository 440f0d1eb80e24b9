import Model
import Testing

@testable import Apps

/// The screenshot format: AppReveal's default is PNG.
@Suite struct ScreenshotFormatTests {
    private static func app(_ format: JSON, name: String = "screenshot") -> ScriptedApp {
        ScriptedApp { request in
            switch request.method {
            case "initialize":
                .result([
                    "protocolVersion": "2025-06-18", "capabilities": ["tools": [:]],
                    "serverInfo": ["name": "AppReveal", "version": "0.10.1"],
                ])
            case "tools/list":
                .result([
                    "tools": [
                        ["name": .string(name), "inputSchema": ["type": "object", "properties": ["format": format]]]
                    ]
                ])
            case "tools/call": .result(["content": []])
            default: .http(204, [], "")
            }
        }
    }

    /// The arguments that the app receives after its tools were listed.
    private static func receivedArguments(
        _ app: ScriptedApp,
        _ arguments: JSONObject = [:],
        tool: String = "screenshot",
        kind: EndpointKind = .appreveal,
        maxPixels: Int = 1_568
    ) async throws -> JSON? {
        let fixture = AppProxyFixture(app)
        let shop = try #require(await fixture.appear(kind: kind))
        _ = try await fixture.proxy.tools(of: shop, for: fixture.owner)
        let call = ToolCall(tool, of: shop, arguments: arguments, maxPixels: maxPixels)
        _ = try await fixture.proxy.call(call, of: fixture.owner)
        return app.calls.first?.body["params"]?["arguments"]
    }

    @Test(
        arguments: [
            ["type": "string", "enum": ["png", "jpeg"]], ["enum": ["png", "webp", "jpeg"]],
            ["type": "string", "description": "png (default) or JPEG"],
        ] as [JSON]
    )
    func `a screenshot without a format is requested as JPEG if the app supports JPEG`(format: JSON) async throws {
        #expect(
            try await Self.receivedArguments(Self.app(format), ["element_id": "a"]) == [
                "element_id": "a", "format": "jpeg",
            ]
        )
    }

    @Test(arguments: ["png", "jpeg", "webp", .null] as [JSON])
    func `the principal's own format is kept`(choice: JSON) async throws {
        let app = Self.app(["enum": ["png", "jpeg", "webp", .null]])

        #expect(try await Self.receivedArguments(app, ["format": choice]) == ["format": choice])
    }

    @Test(
        arguments: [["type": "string"], ["enum": ["png"]], ["enum": ["png"], "description": "no jpeg yet"]] as [JSON]
    )
    func `an app that does not declare JPEG is not asked for JPEG`(format: JSON) async throws {
        #expect(try await Self.receivedArguments(Self.app(format)) == [:])
    }

    @Test func `calls for the original, of other tools and to other servers are not changed`() async throws {
        let format: JSON = ["enum": ["png", "jpeg"]]

        #expect(try await Self.receivedArguments(Self.app(format), maxPixels: 0) == [:])
        #expect(try await Self.receivedArguments(Self.app(format, name: "export"), tool: "export") == [:])
        #expect(try await Self.receivedArguments(Self.app(format), kind: .mcp) == [:])
    }

    @Test func `the app's own address requests JPEG too, and sends no list request for that`() async throws {
        let app = Self.app(["enum": ["png", "jpeg"]])
        let fixture = AppProxyFixture(app)
        let shop = try #require(await fixture.appear())
        let handler = AppRequestHandler(shop.id, proxy: fixture.proxy)
        let call = MCPRequest("tools/call", ["name": "screenshot"])

        _ = try await handler.answer(call, of: fixture.owner)
        #expect(!app.requests.contains { $0.method == "tools/list" })
        #expect(app.calls.last?.body["params"]?["arguments"] == nil)
        _ = try await handler.answer(MCPRequest("tools/list"), of: fixture.owner)
        _ = try await handler.answer(call, of: fixture.owner)

        #expect(app.calls.last?.body["params"]?["arguments"] == ["format": "jpeg"])
    }
}
