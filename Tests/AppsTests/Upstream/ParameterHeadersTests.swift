import Model
import Testing

@testable import Apps

@Suite struct ParameterHeadersTests {
    @Test func `only declared arguments become headers, at any depth`() throws {
        let schema = try JSON(
            parsing: """
                {"type":"object","properties":{
                  "region":{"type":"string","x-mcp-header":"Region"},
                  "twice":{"type":"string","x-mcp-header":"region"},
                  "bad":{"type":"string","x-mcp-header":"a b"},
                  "plain":{"type":"string"},
                  "gone":{"type":"string","x-mcp-header":"Gone"},
                  "none":{"type":"string","x-mcp-header":"None"},
                  "list":{"type":"array","x-mcp-header":"List"},
                  "where":{"type":"object","properties":{"level":{"type":"integer","x-mcp-header":"Level"},
                    "is":{"type":"boolean","x-mcp-header":"Is"}}}}}
                """
        )
        let arguments: JSON = [
            "region": "Zürich", "twice": "x", "bad": "y", "plain": "z", "none": .null, "list": [1],
            "where": ["level": 42, "is": true],
        ]

        let headers = ParameterHeaders(of: schema).headers(for: arguments)

        #expect(
            headers.map { "\($0.name): \($0.value)" } == [
                "Mcp-Param-Region: =?base64?WsO8cmljaA==?=", "Mcp-Param-Level: 42", "Mcp-Param-Is: true",
            ]
        )
    }

    @Test(arguments: [
        ("plain text", "plain text"), ("", "=?base64??="), (" x", "=?base64?IHg=?="), ("x\n", "=?base64?eAo=?="),
        ("=?base64?eA==?=", "=?base64?PT9iYXNlNjQ/ZUE9PT89?="),
    ])
    func `text that a header cannot carry is encoded`(text: String, header: String) {
        #expect(HeaderEncoding.encode(text) == header)
    }
}
