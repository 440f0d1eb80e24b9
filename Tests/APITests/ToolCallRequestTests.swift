import JSON
import Model
import Testing

@testable import API

@Suite struct ToolCallRequestTests {
    @Test func `an order has its tool, and the rest by itself`() throws {
        let order = try ToolCallRequest(Array(#"{"tool":"tap"}"#.utf8))

        #expect(order.tool == "tap" && order.arguments == [:] && order.wait == 10 && order.maxPixels == 1_568)
    }

    @Test func `what came in the place of what belongs there is said`() {
        let problem = #expect(throws: Problem.self) { try ToolCallRequest(Array(#"{"tool":"x","wait_s":"5"}"#.utf8)) }

        #expect(problem?.detail == #""wait_s" must be a whole number from 0 to 60, not a text"#)
    }

    @Test(arguments: [
        ("{", "JSON"), ("{}", "tool"), (#"{"tool":1}"#, "tool"), (#"{"tool":"x","arguments":[]}"#, "arguments"),
        (#"{"tool":"x","wait_s":61}"#, "wait_s"), (#"{"tool":"x","max_px":"big"}"#, "max_px"),
    ])
    func `what is wrong with it is named`(body: String, name: String) {
        let problem = #expect(throws: Problem.self) { try ToolCallRequest(Array(body.utf8)) }

        #expect(problem?.status == 400 && problem?.detail.contains(name) == true)
    }
}
