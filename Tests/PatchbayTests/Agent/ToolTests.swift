import Client
import FoundationEssentials
import Model
import Samples
import TestSupport
import Testing

@testable import patchbay

@Suite(.scratchFolder) struct ToolTests {
    private let scratch = ScratchFolder.current

    @Test(arguments: [
        ("a=5", #"{"type":"string"}"#, #""5""#), ("a=5", #"{"type":"integer"}"#, "5"),
        ("a=5.5", #"{"type":"number"}"#, "5.5"),
        ("a=true", #"{"type":"boolean"}"#, "true"), ("a=[1,2]", #"{"type":"array"}"#, "[1,2]"),
        ("a=null", #"{"type":["string","null"]}"#, "null"), ("a=", #"{"type":"string"}"#, #""""#), ("a=5", "{}", "5"),
        ("a=x=y", "{}", #""x=y""#), (#"a="5""#, "{}", #""\"5\"""#), ("a=5", "null", "5"),
    ])
    func `a value is converted to the type of the schema`(word: String, schema: String, value: String) throws {
        let schema = try JSON(parsing: schema)

        let argument = try ToolArgument(word, try: "x=1")

        #expect(argument.name == "a")
        let node = schema.isNull ? nil : JSONSchemaNode(schema)
        #expect(try argument.value(by: node, try: "patchbay tools").text == value)
    }

    @Test(arguments: [
        ("a=x", "integer"), ("a=5.5", "integer"), ("a=yes", "boolean"), ("a={}", "array"), ("a=[", "object"),
    ])
    func `a value of a wrong type is rejected with the expected type`(word: String, type: String) throws {
        let argument = try ToolArgument(word, try: "x=1")
        let error = #expect(throws: CLIError.self) {
            try argument.value(by: JSONSchemaNode(["type": .string(type)]), try: "patchbay tools shop tap")
        }
        #expect(error?.hint == "patchbay tools shop tap")
        #expect(error?.message.hasPrefix("a must be \(type), and") == true)
    }

    private static let composed = #"""
        {"properties":{"optional":{"anyOf":[{"type":"string"},{"type":"null"}]},"ref":{"$ref":"#/$defs/Name"},
        "all":{"allOf":[{"$ref":"#/$defs/Name"}]},"union":{"oneOf":[{"type":"string","maxLength":2},{"type":"string"}]},
        "either":{"type":["integer","string"]},"choice":{"enum":["1","auto"]},"constant":{"const":"7"},
        "number":{"enum":[1,2]},"mixed":{"enum":[1,"auto"]},"count":{"anyOf":[{"type":"integer"},{"type":"null"}]}},
        "$defs":{"Name":{"type":"string"}}}
        """#

    @Test(arguments: [
        ("optional=0012", #""0012""#), ("optional=true", #""true""#), ("optional=null", "null"), ("ref=42", #""42""#),
        ("all=1e5", #""1e5""#), ("union=42", #""42""#), ("either=0012", #""0012""#), ("choice=1", #""1""#),
        ("constant=7", #""7""#), ("number=1", "1"), ("mixed=1", "1"), ("mixed=auto", #""auto""#), ("count=5", "5"),
    ])
    func `a text stays a text where any part of the schema allows one`(word: String, value: String) throws {
        let name = String(word.prefix { $0 != "=" })

        #expect(try arguments(Self.composed).merged([word], into: [:])[name]?.text == value)
    }

    @Test func `members of the JSON object that the broker converts are not refused`() throws {
        let arguments = try arguments(#"{"properties":{"n":{"type":"integer"},"s":{"type":"string"}}}"#)

        #expect(try arguments.merged([], into: ["n": "5", "s": .null]) == ["n": "5", "s": .null])
    }

    @Test(arguments: ["a", "=b", ""]) func `an argument without a key is rejected`(word: String) {
        #expect(throws: CLIError.self) { try ToolArgument(word, try: "x=1") }
    }

    private func arguments(_ schema: String) throws -> ToolArguments {
        ToolArguments(of: "tap", at: "shop", schema: try JSON(parsing: schema))
    }

    @Test(arguments: [
        #"{"properties":{"element_id":{},"x":{}},"additionalProperties":false}"#,
        #"{"properties":{"element_id":{},"x":{}}}"#,
    ])
    func `an argument that the schema does not have is refused with the nearest one`(schema: String) throws {
        let error = #expect(throws: CLIError.self) { try arguments(schema).merged(["elementid=5"], into: [:]) }

        #expect(error?.message == #"tap has no argument "elementid"; did you mean "element_id"?"#)
        #expect(error?.hint == "patchbay tools shop tap")
        let far = #expect(throws: CLIError.self) { try arguments(schema).merged(["qqq=5"], into: [:]) }
        #expect(far?.message == #"tap has no argument "qqq"; the arguments are element_id, x"#)
    }

    @Test(arguments: [
        "{}", #"{"properties":{"x":{}},"additionalProperties":true}"#,
        #"{"properties":{"x":{}},"patternProperties":{"^e":{}}}"#,
    ])
    func `an argument that the schema may allow is passed on`(schema: String) throws {
        #expect(try arguments(schema).merged(["element=5"], into: [:])["element"] != nil)
    }

    @Test func `a JSON object may have further members unless the schema refuses them`() throws {
        let open = try arguments(#"{"properties":{"x":{}}}"#)
        let closed = try arguments(#"{"properties":{"x":{}},"additionalProperties":false}"#)

        #expect(try open.merged([], into: ["other": 1])["other"] == 1)
        #expect(throws: CLIError.self) { try closed.merged([], into: ["other": 1]) }
    }

    @Test func `a missing required argument is refused, wherever it may be given`() throws {
        let required = try arguments(#"{"properties":{"x":{}},"required":["x"]}"#)

        let error = #expect(throws: CLIError.self) { try required.merged([], into: [:]) }
        #expect(error?.message == "tap needs the argument x; it was not called")
        #expect(error?.hint == "patchbay call shop tap x=…")
        #expect(try required.merged(["x=1"], into: [:])["x"] == 1)
        #expect(try required.merged([], into: ["x": 2])["x"] == 2)
    }

    @Test(arguments: [
        ("{}", ["format=gif"], #"tap was not called: "format" must be one of "png", "jpeg", but is "gif""#),
        (#"{"format":"gif"}"#, [], #"tap was not called: "format" must be one of "png", "jpeg", but is "gif""#),
        (#"{"seconds":"x"}"#, [], #"tap was not called: "seconds" must be a number, but is a text"#),
        ("{}", ["format=png", "format=jpeg"], "the argument format is given twice; tap was not called"),
        (#"{"format":"png"}"#, ["format=jpeg"], "the argument format is given twice; tap was not called"),
    ])
    func `an argument that the schema does not allow is refused in every form`(
        json: String,
        words: [String],
        message: String
    ) throws {
        let arguments = try arguments(
            #"{"properties":{"format":{"type":"string","enum":["png","jpeg"]},"seconds":{"type":"number"}}}"#
        )
        let object = try ToolArguments.object(in: Array(json.utf8))

        let error = #expect(throws: CLIError.self) { try arguments.merged(words, into: object) }

        #expect(error?.message == message && error?.hint == "patchbay tools shop tap")
    }

    @Test func `key=value arguments are added to the members of the JSON object`() throws {
        let given = try ToolArguments.object(in: Array(#"{"deep":{"a":[1]}}"#.utf8))
        let arguments = try arguments(#"{"additionalProperties":true,"properties":{"n":{"type":"integer"}}}"#)
            .merged(["n=3", "s=x"], into: given)

        #expect(JSON.object(arguments).text == #"{"deep":{"a":[1]},"n":3,"s":"x"}"#)
        let list = #expect(throws: CLIError.self) { try ToolArguments.object(in: Array("[1]".utf8)) }
        #expect(list?.message == "the arguments must be a JSON object, not a list")
        #expect(throws: CLIError.self) { try ToolArguments.object(in: Array("{".utf8)) }
    }

    @Test(arguments: [
        (ClientError.connectionLost(what: "x"), true), (.timedOut(what: "x", seconds: 120), true),
        (.brokerNotRunning(path: "/x"), false), (.busy(path: "/x"), false),
        (.refused(Problem(.unavailable, "shop is away")), false),
    ])
    func `a call that may have been executed has an unknown result`(error: ClientError, mayBeDone: Bool) throws {
        let cliError = CallCommand.unknownResultError(after: error, of: "shop")

        #expect((cliError != nil) == mayBeDone)
        #expect(cliError.map { $0.status == .error && $0.message.hasPrefix("result unknown") } ?? true)
    }

    @Test func `an unknown tool gets the most similar name as a hint`() throws {
        let list = ToolList(tools: [["name": "tap_element"], ["name": "screenshot"]])
        let id: EndpointID = "shop"

        #expect(try ToolsCommand.find("screenshot", in: list, of: id) == ["name": "screenshot"])
        let error = #expect(throws: CLIError.self) { try ToolsCommand.find("screnshot", in: list, of: id) }
        #expect(error?.hint == "patchbay tools shop screenshot")
        #expect(error?.status == .notFound)
    }

    @Test func `a list for a limited grant says the limit`() throws {
        let id: EndpointID = "shop"
        let remark = ToolTable.remark(on: ToolList(tools: [], limit: "read-only tools"), id)
        #expect(remark == "your grant is limited to read-only tools")
        #expect(ToolTable.remark(on: ToolList(tools: []), id) == nil)
    }

    @Test func `tools are printed without control characters`() throws {
        let tool: JSONObject = [
            "name": "tap\u{1B}[2J", "description": "Taps. Twice.\nOr more.",
            "inputSchema": [
                "properties": ["id": ["type": "string", "description": "of it"], "how": ["enum": ["a", "b"]]],
                "required": ["id"],
            ], "annotations": ["readOnlyHint": true, "idempotentHint": false],
        ]

        let table = ToolTable.table(of: ToolList(tools: [tool])).text(width: nil, isColoured: false)
        let text = ToolTable.text(of: tool, isColoured: false)

        #expect(table.split(separator: "\n").last?.contains("id! how") == true)
        #expect(table.hasSuffix("Taps"))
        #expect(!table.contains("\u{1B}") && !text.contains("\u{1B}"))
        #expect(text.contains("  id   string, required: of it\n  how  a or b\n  hints from the app: readOnlyHint"))
    }

    @Test func `a result prints its texts and one line per other block`() throws {
        let text = ToolResultPrinter([
            "content": [
                ["type": "text", "text": "tapped"], ["type": "image", "data": "aGFsbG8=", "mimeType": "image/png"],
                ["type": "resource_link", "uri": "patchbay://artifact/1", "mimeType": "video/mp4", "size": 2_500_000],
            ], "isError": true,
        ])

        #expect(
            text.lines == [
                "tapped", "[image/png, 5 B; --output FILE saves it]",
                "patchbay://artifact/1  [video/mp4, 2.5 MB; --output FILE saves it]",
            ]
        )
        #expect(text.savedPart == .bytes(Data("hallo".utf8)))
        #expect(text.lines(savedAs: "x.png", size: 5)[..<2] == ["tapped", "[image/png, 5 B; saved as x.png]"])
        #expect(text.isError)
        #expect(ToolResultPrinter(["structuredContent": ["a": 1]]).lines == [#"{"a":1}"#])
    }

    @Test(arguments: [
        (
            #"{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}"#,
            ToolResultPrinter.SavedPart.bytes(Data("a\nb\n".utf8))
        ),
        (#"{"structuredContent":{"a":1}}"#, .bytes(Data("{\"a\":1}\n".utf8))),
        (#"{"content":[{"type":"resource","resource":{"uri":"a:b","text":"x"}}]}"#, .bytes(Data("x\n".utf8))),
        (
            #"{"content":[{"type":"text","text":"a"},{"type":"resource_link","uri":"patchbay://artifact/5a"}]}"#,
            .artifact("5a")
        ),
        (#"{"content":[{"type":"resource_link","uri":"file:///x"}]}"#, nil), (#"{"content":[]}"#, nil),
    ])
    func `the saved part is the first image or file, else the text, else the structured content`(
        result: String,
        savedPart: ToolResultPrinter.SavedPart?
    ) throws {
        let result = try #require(try JSON(parsing: result).object)

        #expect(ToolResultPrinter(result).savedPart == savedPart)
    }

    @Test func `an unwritable output file is reported before and after the call`() async throws {
        let missing = OutputFile(path: scratch.file("nowhere/shot.png"))
        let before = #expect(throws: CLIError.self) { try missing.check() }
        let after = #expect(throws: CLIError.self) { try missing.write([1]) }
        #expect(before?.message.hasSuffix("(No such file or directory); the tool was not called") == true)
        #expect(after?.message.hasSuffix("(No such file or directory); the tool was called") == true)
        #expect(after?.message.contains("nowhere/shot.png") == true && after?.hint?.contains("folder") == true)
        let folder = #expect(throws: CLIError.self) { try OutputFile(path: scratch.path).check() }
        #expect(folder?.hint == "specify a file in that folder")
        let empty = #expect(throws: CLIError.self) { try OutputFile(path: "").check() }
        #expect(empty?.message == "--output is empty; the tool was not called")

        let file = OutputFile(path: scratch.file("shot.png"))
        try file.check()
        try file.write([1, 2, 3])
        try file.write([4])
        #expect(try Array(Data(contentsOf: URL(filePath: file.path))) == [4])
    }

    private static let png: [UInt8] = [0x89, 0x50, 0x4E, 0x47, 0x0D]
    private static let jpeg: [UInt8] = [0xFF, 0xD8, 0xFF]
    private static let text = Array("text".utf8)
    private static let namesAndContents: [(String, String?, [UInt8], Bool)] = [
        ("shot.png", "png", png, true), ("shot.PNG", "png", jpeg, false), ("shot.jpg", "jpeg", jpeg + [0xE0], true),
        ("a.jpeg", "jpeg", text, false), ("shot", nil, jpeg, true), ("-", nil, [1], true),
        ("a.b/shot", nil, jpeg, true),
        ("shot.txt", nil, jpeg, false), ("tree.txt", nil, text, true),
    ]

    @Test(arguments: namesAndContents)
    func `a file's name selects the image format, and other content is refused`(
        name: String,
        format: String?,
        bytes: [UInt8],
        isAccepted: Bool
    ) {
        let file = OutputFile(path: name)

        #expect(file.imageFormat == format)
        #expect(((try? file.checkFormat(of: bytes)) != nil) == isAccepted)
    }

    @Test func `a stale list of tools has a reason and a hint`() throws {
        let id: EndpointID = "shop"
        let list = ToolList(
            tools: [],
            isStale: true,
            reason: "shop wants its session token",
            hint: "patchbay secret set shop"
        )

        #expect(
            ToolTable.remark(on: list, id)
                == "shop wants its session token; these are the last known tools\ntry: patchbay secret set shop"
        )
    }
}
