import Model
import Testing

@testable import Apps

@Suite struct ToolResultSanitizerTests {
    private static let kept: JSON = ["type": "text", "text": "kept"]

    @Test(
        arguments: [
            ["content": []],
            ["content": [kept], "structuredContent": ["a": 1], "isError": false, "_meta": ["x": 1]],
            ["content": [["type": "image", "data": "AA=="], ["type": "resource_link", "uri": "a:b", "name": "b"]]],
            [
                "content": [
                    ["type": "resource", "resource": ["uri": "a:b", "blob": ""], "annotations": ["priority": 1]]
                ]
            ],
            ["resultType": "input_required", "inputRequests": [:]],
        ] as [JSONObject]
    )
    func `a valid result is not changed`(result: JSONObject) { #expect(ToolResultSanitizer.repaired(result) == nil) }

    @Test(
        arguments: [
            (["structuredContent": ["a": 1]], [["type": "text", "text": #"{"a":1}"#]]),
            (["title": "x", "_meta": [:]], [["type": "text", "text": #"{"title":"x"}"#]]),
            (["content": .null], []),
            (["content": "kept"], [kept]),
            (["content": ["kept", .null, 7]], [kept, ["type": "text", "text": "7"]]),
            (["content": kept], [kept]),
            (
                ["content": [["type": "text", "text": 42], ["type": "text", "text": .null]]],
                [["type": "text", "text": "42"]]
            ),
            (
                ["content": [["type": "chart", "points": [1]]]],
                [["type": "text", "text": #"{"type":"chart","points":[1]}"#]]
            ),
            (
                ["content": [["type": "resource_link", "uri": "a:b"]]],
                [["type": "resource_link", "uri": "a:b", "name": "a:b"]]
            ),
            (["content": [["type": "text", "text": "kept", "annotations": .null, "_meta": []]]], [kept]),
            (
                ["content": [["type": "audio", "data": "AA=="]]],
                [["type": "audio", "data": "AA==", "mimeType": "application/octet-stream"]]
            ),
        ] as [(JSONObject, JSON)]
    )
    func `content that MCP does not allow stays readable`(result: JSONObject, content: JSON) throws {
        let repaired = try #require(ToolResultSanitizer.repaired(result))

        #expect(repaired["content"] == content)
        // A repaired result is valid.
        #expect(ToolResultSanitizer.repaired(repaired) == nil)
    }

    @Test(arguments: [(.null, nil), ("true", true), ("no", nil), (1, nil)] as [(JSON, JSON?)])
    func `members of the wrong type are left out`(isError: JSON, expected: JSON?) throws {
        let result: JSONObject = [
            "content": [Self.kept], "isError": isError, "_meta": .null, "structuredContent": .null,
        ]

        let repaired = try #require(ToolResultSanitizer.repaired(result))

        #expect(repaired["isError"] == expected)
        #expect(repaired["_meta"] == nil && repaired["structuredContent"] == nil)
        #expect(repaired["content"] == [Self.kept])
    }
}
