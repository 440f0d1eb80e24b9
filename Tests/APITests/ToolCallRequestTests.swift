import Model
import Testing

@testable import API

@Suite struct ToolCallRequestTests {
    @Test func `a request needs only a tool and gets default values`() throws {
        let toolCall = try ToolCallRequest(Array(#"{"tool":"tap"}"#.utf8))

        #expect(
            toolCall.tool == "tap" && toolCall.arguments == [:] && toolCall.waitSeconds == 10
                && toolCall.maxPixels == 1_568
        )
    }

    @Test func `the error names the expected type and the type found`() {
        let problem = #expect(throws: Problem.self) {
            try ToolCallRequest(Array(#"{"tool":"x","waitSeconds":"5"}"#.utf8))
        }

        #expect(problem?.detail == #""waitSeconds" must be a whole number from 0 to 60, not a text"#)
    }

    @Test(arguments: [
        ("{", "JSON"), ("{}", "tool"), (#"{"tool":1}"#, "tool"), (#"{"tool":"x","arguments":[]}"#, "arguments"),
        (#"{"tool":"x","waitSeconds":61}"#, "waitSeconds"), (#"{"tool":"x","maxPixels":"big"}"#, "maxPixels"),
        (#"{"tool":"x","imageFormat":"gif"}"#, "imageFormat"),
    ])
    func `the error names the invalid member`(body: String, name: String) {
        let problem = #expect(throws: Problem.self) { try ToolCallRequest(Array(body.utf8)) }

        #expect(problem?.status == 400 && problem?.detail.contains(name) == true)
    }
}
