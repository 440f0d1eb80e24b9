import AccessControl
import Model
import TestSupport
import Testing

@testable import Apps

/// The lists of apps, by the rules of the strictest known clients.
@Suite struct StrictClientTests {
    /// Damaged and unusual entries of each kind, as servers send them.
    private static let damaged: [String: [JSON]] = [
        "tools/list": [
            "text", .null, ["name": 5], ["name": "missing"], ["name": "no_object", "inputSchema": []],
            ["name": "php", "inputSchema": ["type": "object", "properties": [], "required": []]],
            ["name": "empty_argument", "inputSchema": ["properties": ["options": []], "required": "options"]],
            [
                "name": "nulls", "title": .null,
                "inputSchema": ["type": "object", "properties": .null, "required": .null],
            ],
            ["name": "yes", "inputSchema": ["properties": ["any": true, "none": false, "null": .null]]],
            ["name": "choice", "inputSchema": ["properties": ["a": ["enum": ["x", "y"]], "b": ["enum": []]]]],
            [
                "name": "nested",
                "inputSchema": ["properties": ["a": ["type": "object", "properties": [], "required": true]]],
            ],
            [
                "name": "lists",
                "inputSchema": ["properties": ["a": ["type": "array"], "b": ["type": "array", "items": []]]],
            ],
            [
                "name": "union",
                "inputSchema": ["properties": ["a": ["anyOf": [true, ["enum": ["x"]]]], "b": ["oneOf": []]]],
            ],
            ["name": "output", "outputSchema": ["properties": []]],
            ["name": "list_output", "outputSchema": ["type": "array"]],
            [
                "name": "defs",
                "inputSchema": ["$defs": ["A": ["type": "object", "properties": []]], "definitions": []],
            ],
            ["name": "line\nbreak"], ["name": .string(String(repeating: "n", count: 200))], ["name": "php"],
            [
                "name": "hints", "annotations": ["title": 5, "readOnlyHint": "yes"],
                "icons": [["src": 5], ["src": "x"], ["src": "y", "sizes": "48x48"]],
                "execution": ["taskSupport": "maybe"],
            ],
        ],
        "prompts/list": [
            .null, ["name": "plain"], ["name": "plain"], ["title": "nameless"],
            ["name": "a", "title": .null, "description": 5, "arguments": .null],
            [
                "name": "b",
                "arguments": [["name": "x", "required": "yes", "description": .null], ["description": "y"], 5],
            ],
        ],
        "resources/list": [
            5, ["uri": "app://a"], ["name": "without"],
            ["uri": "app://b", "name": .null, "mimeType": .null, "size": "5"],
            ["uri": "app://c", "name": "c", "annotations": ["audience": ["everyone"], "priority": 5], "icons": .null],
        ],
        "resources/templates/list": [
            [], ["uriTemplate": "app://{a}"], ["uriTemplate": "app://{b}", "name": 5, "_meta": []], ["name": "without"],
        ],
    ]

    private static func app(_ list: @escaping @Sendable (_ method: String, _ member: String, JSON?) -> JSON)
        -> ScriptedApp
    {
        ScriptedApp { request in
            if let member = MCPRequest.listMembers[request.method] {
                return .result(list(request.method, member, request.body["params"]?["cursor"]))
            }
            return switch request.method {
            case "initialize":
                .result(["protocolVersion": "2025-06-18", "capabilities": ["tools": [:]], "serverInfo": ["name": "x"]])
            case "tools/call": .result(["content": []])
            case let method where method.hasPrefix("notifications/"): .http(204, [], "")
            default: .error(-32_601, "Method not found")
            }
        }
    }

    /// Returns a list as a client of a version with a handshake gets it.
    private static func listed(_ method: String, by app: ScriptedApp) async throws -> [JSON] {
        let fixture = AppProxyFixture(app)
        let shop = try #require(await fixture.appear())
        let handler = AppRequestHandler(shop.id, proxy: fixture.proxy)
        let list = try await handler.answer(MCPRequest(method), of: fixture.owner)
        #expect(fixture.proxy.describingDeviations([shop])[0].deviations?.count == 1)
        // The transport leaves this schema out.
        return (list[MCPRequest.listMembers[method] ?? ""]?.array ?? []).map { entry in
            entry["outputSchema"]?["type"] == "object"
                ? entry : .object((entry.object ?? [:]).with("outputSchema", nil))
        }
    }

    @Test(arguments: [("tools/list", 16), ("prompts/list", 3), ("resources/list", 3), ("resources/templates/list", 2)])
    func `a list of an app keeps every rule after its repair, and loses only what cannot be repaired`(
        method: String,
        count: Int
    ) async throws {
        let app = Self.app { method, member, _ in [member: .array(Self.damaged[method] ?? [])] }

        let entries = try await Self.listed(method, by: app)

        #expect(StrictClientRules.problems(in: entries, of: method) == [])
        #expect(entries.count == count, "\(entries.map(\.text))")
    }

    @Test(arguments: Array(MCPRequest.listMembers.keys))
    func `an empty or repeated cursor ends a list of every kind`(method: String) async throws {
        for last in ["", .null, false, "1"] as [JSON] {
            let app = Self.app { _, member, cursor in
                let key = .string("app://\(cursor?.string ?? "0")") as JSON
                return [
                    member: [["name": key, "uri": key, "uriTemplate": key, "title": .null]],
                    "nextCursor": cursor == nil ? "1" : last,
                ]
            }

            #expect(try await Self.listed(method, by: app).count == 2)
            #expect(app.requests.count { $0.method == method } == 2)
        }
    }

    @Test func `a schema that is only completed is no deviation of the server`() async throws {
        let tools: JSON = [["name": "a", "inputSchema": ["type": "object"]], ["name": "b"]]
        let app = Self.app { _, member, _ in [member: tools] }
        let fixture = AppProxyFixture(app)
        let shop = try #require(await fixture.appear())

        let listed = try await fixture.proxy.tools(of: shop, for: fixture.owner).tools

        let schema: JSON = ["type": "object", "properties": [:]]
        #expect(listed == [["name": "a", "inputSchema": schema], ["name": "b", "inputSchema": schema]])
        #expect(fixture.proxy.describingDeviations([shop])[0].deviations == nil)
    }

    @Test func `the repair of a schema keeps its meaning`() throws {
        let schema = try JSON(
            parsing: """
                {"type":"object","properties":{"a":true,"b":false,"c":{"enum":["x"]},"d":{"type":"array"},\
                "e":{"type":"object","properties":[],"required":"x"}},"required":null}
                """
        )

        #expect(
            JSONSchemaSanitizer.inputSchema(schema).text == """
                {"type":"object","properties":{"a":{},"b":{"not":{}},"c":{"enum":["x"],"type":"string"},\
                "d":{"type":"array","items":{}},"e":{"type":"object","properties":{},"required":["x"]}}}
                """
        )
    }

    @Test func `a tool with a name that clients refuse is listed under a safe name and called by its own`() async throws
    {
        let own = "tap\u{1}\(String(repeating: "x", count: 200))"
        let app = Self.app { _, member, _ in
            [member: [["name": .string(own), "inputSchema": ["properties": ["n": ["type": "integer"]]]]]]
        }
        let fixture = AppProxyFixture(app)
        let shop = try #require(await fixture.appear())
        let listed = try #require(try await fixture.proxy.tools(of: shop, for: fixture.owner).tools.first)
        let name = try #require(listed["name"]?.string)

        let result = await fixture.call(ToolCall(name, of: shop, arguments: ["n": 1]), of: fixture.owner)
        let refused = await fixture.call(ToolCall(name, of: shop, arguments: ["n": "x"]), of: fixture.owner)

        #expect(name.utf8.count == 64 && name.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F })
        #expect(result["isError"] == nil && refused["isError"] == true)
        #expect(app.calls.map { $0.body["params"]?["name"] } == [.string(own)])
        #expect(fixture.authorizer.events.map(\.subject.text).allSatisfy { name.hasPrefix($0) })
    }

    @Test func `an app cannot give a tool the name of another one`() async throws {
        let app = Self.app { _, member, _ in
            [member: [["name": "look", "inputSchema": [:], "_meta": ["patchbay/name": "delete_all"]]]]
        }
        let fixture = AppProxyFixture(app)
        let shop = try #require(await fixture.appear())
        _ = try await fixture.proxy.tools(of: shop, for: fixture.owner)

        _ = await fixture.call(ToolCall("look", of: shop), of: fixture.owner)

        #expect(app.calls.map { $0.body["params"]?["name"] } == ["look"])
    }
}
