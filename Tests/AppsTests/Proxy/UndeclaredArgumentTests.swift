import AccessControl
import Model
import Testing

@testable import Apps

/// Arguments that the schema of the tool does not declare.
@Suite struct UndeclaredArgumentTests {
    private static let schema: JSONObject = [
        "type": "object", "properties": ["element_id": ["type": "string"], "seconds": ["type": "number"]],
        "required": ["element_id"],
    ]

    private static func app(_ schema: JSONObject) -> ScriptedApp {
        let app = ScriptedApp.appReveal()
        return ScriptedApp { request in
            guard request.method == "tools/list" else { return app.reply(to: request) }
            return .result(["tools": [["name": "tap", "inputSchema": .object(schema)]]])
        }
    }

    private static func result(of arguments: JSONObject, _ schema: JSONObject = schema) async throws -> JSONObject {
        let fixture = AppProxyFixture(app(schema))
        let shop = try #require(await fixture.appear())
        _ = try await fixture.proxy.tools(of: shop, for: fixture.owner)
        return await fixture.call(ToolCall("tap", of: shop, arguments: arguments), of: fixture.owner)
    }

    private static func texts(_ result: JSONObject) -> [String] {
        result["content"]?.array?.compactMap { $0["text"]?.string } ?? []
    }

    @Test func `a refusal for a missing argument names the sent argument that resembles it`() async throws {
        let result = try await Self.result(of: ["elementId": "buy"])

        let text = try #require(Self.texts(result).first)
        #expect(result["isError"] == true)
        #expect(
            text.contains(#""element_id" is missing; "elementId" is not an argument, did you mean "element_id"?"#),
            "\(text)"
        )
    }

    @Test func `a delivered call with a misspelled optional argument has a warning after the app's own result`()
        async throws
    {
        let result = try await Self.result(of: ["element_id": "buy", "secnods": 1])
        let plain = try await Self.result(of: ["element_id": "buy", "seconds": 1])

        #expect(result["isError"] == nil && plain["isError"] == nil)
        #expect(Self.texts(result).dropLast() == Self.texts(plain)[...])
        #expect(
            Self.texts(result).last == #"""
                warning by Patchbay: "secnods" (did you mean "seconds"?) is not an argument of tap, and the app may have \#
                ignored it
                """#
        )
    }

    @Test func `a direct call is warned too`() async throws {
        let fixture = AppProxyFixture(Self.app(Self.schema))
        let shop = try #require(await fixture.appear())
        _ = try await fixture.proxy.tools(of: shop, for: fixture.owner)

        let result = try await AppRequestHandler(shop.id, proxy: fixture.proxy).answer(
            MCPRequest("tools/call", ["name": "tap", "arguments": ["element_id": "buy", "x": 1]]),
            of: fixture.owner
        )

        #expect(Self.texts(result).last?.hasPrefix(#"warning by Patchbay: "x" is not an argument of tap"#) == true)
    }

    private static let open: [JSONObject] = [
        ["type": "object"],
        ["properties": ["a": [:]], "additionalProperties": true],
        ["properties": ["a": [:]], "additionalProperties": ["type": "string"]],
        ["properties": ["a": [:]], "patternProperties": ["^x": [:]]],
        ["properties": ["a": [:]], "anyOf": [["required": ["b"]]]],
        ["properties": ["a": [:]], "$ref": "#/$defs/more"],
    ]

    @Test(arguments: open) func `a schema that may allow other arguments gives no warning`(schema: JSONObject) {
        #expect(UndeclaredArguments(in: ["b": 1], of: schema).warning(for: "tap") == nil)
    }

    @Test func `names in a message are limited and sanitized`() {
        let many = JSONObject((0..<50).map { JSONObject.Member(name: "\($0)\u{202E}x", value: 1) })

        let warning = UndeclaredArguments(in: many, of: ["properties": ["a": [:]]]).warning(for: "tap") ?? ""

        #expect(warning.count < 300 && !warning.contains("\u{202E}"))
    }
}
