import Model
import Testing

@testable import Agents
@testable import Apps

/// MCP 2026-07-28: arguments declared with `x-mcp-header` must be equal in headers and body.
@Suite struct ParameterMismatchTests {
    private static let schema: JSON = [
        "type": "object",
        "properties": [
            "region": ["type": "string", "x-mcp-header": "Region"],
            "where": ["type": "object", "properties": ["level": ["type": "integer", "x-mcp-header": "Level"]]],
            "on": ["type": "boolean", "x-mcp-header": "On"],
        ],
    ]
    private static let arguments: JSON = ["region": "Zürich", "where": ["level": 42], "on": .null]
    private static let headers = ["mcp-param-region": ["=?base64?WsO8cmljaA==?="], "Mcp-Param-Level": ["42"]]

    private static func ask(
        _ changes: [String: [String]] = [:],
        _ arguments: JSON = arguments,
        schema: JSON? = schema
    ) async throws -> (status: Int, code: Int?, calls: Int) {
        let handler = ScriptedHandler(schema: schema)
        let headers = headers.merging(changes) { $1 }
        let call = TransportFixture.stateless("tools/call", ["name": "tap", "arguments": arguments], headers: headers)
        let (status, json) = try await TransportFixture(handler).json(call)
        return (status, json?["error"]?["code"]?.int, handler.requests.count)
    }

    @Test(arguments: [
        [:], ["Mcp-Param-Level": ["42.0"]], ["Mcp-Param-Level": ["=?base64?NDI=?="]], ["Mcp-Param-Other": ["x"]],
    ])
    func `headers that agree with the body are accepted`(changes: [String: [String]]) async throws {
        #expect(try await Self.ask(changes) == (200, nil, 1))
    }

    @Test(arguments: [
        ["mcp-param-region": []], ["mcp-param-region": ["Zurich"]], ["mcp-param-region": ["=?base64?!?="]],
        ["mcp-param-region": ["Z\u{FC}rich"]], ["Mcp-Param-Level": ["43"]], ["Mcp-Param-Level": ["4.2e1"]],
        ["Mcp-Param-Level": ["42", "42"]], ["Mcp-Param-On": ["true"]],
    ])
    func
        `a missing, repeated, extra or contradictory header is rejected with 400, and no tool is called`(
            changes: [String: [String]]
        ) async throws
    { #expect(try await Self.ask(changes) == (400, -32_020, 0)) }

    @Test func `a stdio client needs no headers`() async throws {
        let none = ["mcp-param-region": [String](), "Mcp-Param-Level": [], "Patchbay-Transport": ["stdio"]]

        #expect(try await Self.ask(none) == (200, nil, 1))
    }

    @Test(
        arguments: [
            ["properties": ["region": ["type": "string", "x-mcp-header": "a b"]]],
            ["properties": ["region": ["type": "number", "x-mcp-header": "Region"]]],
            [
                "properties": ["region": ["type": "string", "x-mcp-header": "Region"]],
                "anyOf": [["properties": ["x": ["type": "string", "x-mcp-header": "X"]]]],
            ], ["properties": ["region": ["type": "string"]]],
        ] as [JSON]
    )
    func `a schema with invalid or no declarations requires no headers`(schema: JSON) async throws {
        #expect(try await Self.ask(["mcp-param-region": ["other"]], schema: schema) == (200, nil, 1))
    }

    @Test func `session protocols require no parameter headers`() async throws {
        let handler = ScriptedHandler(schema: Self.schema)
        let fixture = TransportFixture(handler)
        let session = try await fixture.handshake()
        let body = TransportFixture.request("tools/call", ["name": "tap", "arguments": Self.arguments])

        let (status, _) = try await fixture.json(TransportFixture.call(body, headers: ["Mcp-Session-Id": [session]]))

        #expect(status == 200)
        #expect(handler.requests.count == 1)
    }
}
