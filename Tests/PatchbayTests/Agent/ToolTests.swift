import Client
import FoundationEssentials
import JSON
import Model
import Testing

@testable import patchbay

@Suite struct ToolTests {
    @Test(arguments: [
        ("a=5", #"{"type":"string"}"#, #""5""#), ("a=5", #"{"type":"integer"}"#, "5"),
        ("a=5.5", #"{"type":"number"}"#, "5.5"),
        ("a=true", #"{"type":"boolean"}"#, "true"), ("a=[1,2]", #"{"type":"array"}"#, "[1,2]"),
        ("a=null", #"{"type":["string","null"]}"#, "null"), ("a=", #"{"type":"string"}"#, #""""#), ("a=5", "{}", "5"),
        ("a=x=y", "{}", #""x=y""#), (#"a="5""#, "{}", #""\"5\"""#), ("a=5", "null", "5"),
    ])
    func `a value is what the schema says that it is`(word: String, schema: String, value: String) throws {
        let schema = try JSON(parsing: schema)

        let argument = try ToolArgument(word)

        #expect(argument.name == "a")
        #expect(try argument.value(by: schema.isNull ? nil : schema).text == value)
    }

    @Test(arguments: [
        ("a=x", "integer"), ("a=5.5", "integer"), ("a=yes", "boolean"), ("a={}", "array"), ("a=[", "object"),
    ])
    func `what it cannot be is said`(word: String, type: String) throws {
        let argument = try ToolArgument(word)
        let complaint = #expect(throws: Complaint.self) { try argument.value(by: ["type": .string(type)]) }
        #expect(complaint?.message.hasPrefix("a must be \(type), and") == true)
    }

    @Test(arguments: ["a", "=b", ""]) func `a word without a key is refused`(word: String) {
        #expect(throws: Complaint.self) { try ToolArgument(word) }
    }

    @Test func `words add to what is given as JSON`() throws {
        let schema: JSON = ["properties": ["n": ["type": "integer"]]]

        let arguments = try Call.arguments(["n=3", "s=x"], Array(#"{"n":1,"deep":{"a":[1]}}"#.utf8), schema: schema)

        #expect(JSON.object(arguments).text == #"{"n":3,"deep":{"a":[1]},"s":"x"}"#)
        #expect(throws: Complaint.self) { try Call.arguments([], Array("[1]".utf8), schema: nil) }
        #expect(throws: Complaint.self) { try Call.arguments([], Array("{".utf8), schema: nil) }
    }

    @Test func `a tool is found, or the nearest is named`() throws {
        let list = ToolList(tools: [["name": "tap_element"], ["name": "screenshot"]])
        let id = try #require(EndpointID("shop"))

        #expect(try Tools.find("screenshot", in: list, of: id) == ["name": "screenshot"])
        let complaint = #expect(throws: Complaint.self) { try Tools.find("screnshot", in: list, of: id) }
        #expect(complaint?.remedy == "patchbay tools shop screenshot")
        #expect(complaint?.status == .notFound)
    }

    @Test func `tools are shown without anything that a terminal would obey`() throws {
        let tool: JSONObject = [
            "name": "tap\u{1B}[2J", "description": "Taps. Twice.\nOr more.",
            "inputSchema": [
                "properties": ["id": ["type": "string", "description": "of it"], "how": ["enum": ["a", "b"]]],
                "required": ["id"],
            ], "annotations": ["readOnlyHint": true, "idempotentHint": false],
        ]

        let table = ToolListing.table(of: ToolList(tools: [tool])).text(width: nil, isColoured: false)
        let text = ToolListing.text(of: tool, isColoured: false)

        #expect(table.split(separator: "\n").last?.contains("id! how") == true)
        #expect(table.hasSuffix("Taps"))
        #expect(!table.contains("\u{1B}") && !text.contains("\u{1B}"))
        #expect(text.contains("  id   string, required: of it\n  how  a or b\n  it says of itself: readOnlyHint"))
    }

    @Test func `a result is its texts, and a line for everything else`() throws {
        let text = ToolResultText([
            "content": [
                ["type": "text", "text": "tapped"], ["type": "image", "data": "aGFsbG8=", "mimeType": "image/png"],
                ["type": "resource_link", "uri": "patchbay://artifact/1", "mimeType": "video/mp4", "size": 2_500_000],
            ], "isError": true,
        ])

        #expect(
            text.lines == [
                "tapped", "[image/png, 5 B; --output FILE saves it]", "patchbay://artifact/1  [video/mp4, 2.5 MB]",
            ]
        )
        #expect(text.file == Data("hallo".utf8))
        #expect(text.isError)
        #expect(ToolResultText(["structuredContent": ["a": 1]]).lines == [#"{"a":1}"#])
    }
}
