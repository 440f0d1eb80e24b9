import JSON
import Model
import Testing

@testable import MCP

/// AppReveal takes its pictures as PNG unless it is asked for something else.
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
                        [
                            "name": .string(name),
                            "inputSchema": ["type": "object", "properties": ["format": format]],
                        ]
                    ]
                ])
            case "tools/call": .result(["content": []])
            default: .http(204, [], "")
            }
        }
    }

    /// What the app is asked for, once its tools have been listed.
    private static func asked(
        _ app: ScriptedApp,
        _ arguments: JSONObject = [:],
        tool: String = "screenshot",
        kind: EndpointKind = .appreveal,
        maxPixels: Int = 1_568
    ) async throws -> JSON? {
        let rig = DeskRig(app)
        let shop = try #require(await rig.appear(kind: kind))
        _ = try await rig.desk.tools(of: shop, for: rig.owner)
        let call = ToolCall(tool, of: shop, arguments: arguments, maxPixels: maxPixels)
        _ = try await rig.desk.call(call, of: rig.owner)
        return app.calls.first?.body["params"]?["arguments"]
    }

    @Test(
        arguments: [
            ["type": "string", "enum": ["png", "jpeg"]], ["enum": ["png", "webp", "jpeg"]],
            ["type": "string", "description": "png (default) or JPEG"],
        ] as [JSON]
    )
    func `who says no format gets a JPEG of an app that takes them`(format: JSON) async throws {
        #expect(try await Self.asked(Self.app(format), ["element_id": "a"]) == ["element_id": "a", "format": "jpeg"])
    }

    @Test(arguments: ["png", "jpeg", "webp", .null] as [JSON])
    func `a caller's own choice stands`(choice: JSON) async throws {
        let app = Self.app(["enum": ["png", "jpeg"]])

        #expect(try await Self.asked(app, ["format": choice]) == ["format": choice])
    }

    @Test(
        arguments: [["type": "string"], ["enum": ["png"]], ["enum": ["png"], "description": "no jpeg yet"]] as [JSON]
    )
    func `an app that does not say that it takes JPEG is not asked for it`(format: JSON) async throws {
        #expect(try await Self.asked(Self.app(format)) == [:])
    }

    @Test func `the original, other tools and other servers are asked as they were`() async throws {
        let format: JSON = ["enum": ["png", "jpeg"]]

        #expect(try await Self.asked(Self.app(format), maxPixels: 0) == [:])
        #expect(try await Self.asked(Self.app(format, name: "export"), tool: "export") == [:])
        #expect(try await Self.asked(Self.app(format), kind: .mcp) == [:])
    }

    @Test func `at the app's own address it is the same, and no list is asked for because of it`() async throws {
        let app = Self.app(["enum": ["png", "jpeg"]])
        let rig = DeskRig(app)
        let shop = try #require(await rig.appear())
        let server = AppMCPServer(shop.id, desk: rig.desk)
        let call = MCPRequest("tools/call", ["name": "screenshot"])

        _ = try await server.answer(call, of: rig.owner)
        #expect(!app.requests.contains { $0.method == "tools/list" })
        #expect(app.calls.last?.body["params"]?["arguments"] == nil)
        _ = try await server.answer(MCPRequest("tools/list"), of: rig.owner)
        _ = try await server.answer(call, of: rig.owner)

        #expect(app.calls.last?.body["params"]?["arguments"] == ["format": "jpeg"])
    }
}
