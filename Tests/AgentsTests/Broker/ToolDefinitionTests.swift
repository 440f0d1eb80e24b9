import Model
import Testing

@testable import Agents
@testable import Apps

/// The definitions of tools, and the arguments that the definitions allow.
@Suite struct ToolDefinitionTests {
    private enum Color: String, CaseIterable { case red, green }

    private static let name = ToolParameter.text("name", "of the lamp")
    private static let level = ToolParameter.number("level", in: 1...10, "default 5")
    private static let color = ToolParameter<Color>.word("color", "default red")
    private static let mode = ToolParameter<Color>.word("mode")
    private static let port = ToolParameter.port("port", "of the lamp")
    private static let extra = ToolParameter.object("extra")

    private static let definition = ToolDefinition(
        name: "lamp",
        description: "Lights a lamp.",
        scope: .endpointCall,
        required: [name.property],
        optional: [level.property, color.property, mode.property, port.property, extra.property],
        annotations: ["readOnlyHint": true]
    )

    private static func request(_ arguments: JSON) throws(ToolError) -> ToolRequest {
        try ToolRequest(MCPRequest("tools/call", ["name": "lamp", "arguments": arguments]), for: definition)
    }

    @Test func `a definition has the schemas of the parameters in their order`() throws {
        let schema = """
            {"type":"object","properties":{"name":{"type":"string","description":"of the lamp"},\
            "level":{"type":"integer","maximum":10,"description":"default 5"},\
            "color":{"type":"string","enum":["red","green"],"description":"default red"},\
            "mode":{"type":"string","enum":["red","green"]},"port":{"type":"integer","description":"of the lamp"},\
            "extra":{"type":"object"}},"required":["name"]}
            """

        #expect(
            Self.definition.json.text == """
                {"name":"lamp","description":"Lights a lamp.","inputSchema":\(schema),"annotations":{"readOnlyHint":true}}
                """
        )
    }

    @Test
    func `an argument has the type of its parameter, also if it came as a text, and is nil if it is absent or null`()
        throws
    {
        let request = try Self.request([
            "name": "hall", "level": "10", "color": "green", "port": 65_535, "extra": #"{"a": 1}"#,
        ])
        let empty = try Self.request(["name": "", "level": .null])

        #expect(try request.required(Self.name) == "hall")
        #expect(try request[Self.level] == 10 && request[Self.color] == .green && request[Self.port] == 65_535)
        #expect(try request[Self.extra] == ["a": 1])
        #expect(try empty[Self.level] == nil && empty[Self.color] == nil && empty[Self.extra] == nil)
        #expect(throws: ToolError("name is missing")) { try empty.required(Self.name) }
    }

    @Test func `an argument of the wrong type or range is named with the allowed values`() throws {
        let request = try Self.request([
            "name": true, "level": 11, "color": "blue", "mode": [:], "port": 0, "extra": [],
        ])

        #expect(throws: ToolError("name must be a string")) { try request[Self.name] }
        #expect(throws: ToolError("level must be a whole number from 1 to 10")) { try request[Self.level] }
        #expect(throws: ToolError("color must be one of red, green")) { try request[Self.color] }
        #expect(throws: ToolError("mode must be a string")) { try request[Self.mode] }
        #expect(throws: ToolError("port must be a whole number from 1 to 65535")) { try request[Self.port] }
        #expect(throws: ToolError("extra must be an object, not a list")) { try request[Self.extra] }
    }

    @Test func `an argument that no parameter declares is rejected with the nearest name, or with all`() {
        #expect(throws: ToolError("unknown argument \"levle\"; did you mean \"level\"?")) {
            try Self.request(["levle": 1])
        }
        #expect(
            throws: ToolError("unknown argument \"zone\"; the other arguments are color, extra, level, mode, port")
        ) { try Self.request(["name": "hall", "zone": 1]) }
        #expect(throws: ToolError("the value of arguments must be an object, not a list")) { try Self.request([1]) }
    }

    @Test func `an incomplete text in place of an object is rejected with the reason`() throws {
        let request = try Self.request(["extra": #"{"a": "b"#])

        let error = #expect(throws: ToolError.self) { try request[Self.extra] }
        let start = "extra must be an object; it is a text of 8 bytes that is not complete JSON: "
        #expect(error?.description.hasPrefix(start) == true, "\(error)")
    }
}
