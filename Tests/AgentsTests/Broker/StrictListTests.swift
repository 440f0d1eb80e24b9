import AccessControl
import Model
import TestSupport
import Testing

@testable import Agents
@testable import Apps

/// The broker's own lists, by the rules of the strictest known clients.
@Suite struct StrictListTests {
    @Test func `the broker's own lists keep every rule`() async throws {
        let handler = BrokerFixture().handler
        for (method, member) in MCPRequest.listMembers where method != "prompts/list" {
            let list = try await handler.answer(MCPRequest(method), of: BrokerFixture.owner)
            let entries = try #require(list[member]?.array)

            #expect(StrictClientRules.problems(in: entries, of: method) == [])
            guard method == "tools/list" else { continue }
            #expect(entries.flatMap(StrictClientRules.portabilityProblems) == [])
        }
    }

    @Test func `a schema of a result that is no object is left out for older versions only`() throws {
        let tool: JSON = ["name": "a", "outputSchema": ["type": "array"]]
        let list: JSONObject = ["tools": [tool, ["name": "b", "outputSchema": ["type": "object"]]]]

        let old = try ResultAdapter(mode: .session(.v2025_11_25), method: "tools/list").adapt(list, serverInfo: [:])
        let new = try ResultAdapter(mode: .stateless, method: "tools/list").adapt(list, serverInfo: [:])

        #expect(old["tools"]?.array?.map { $0["outputSchema"] } == [nil, ["type": "object"]])
        #expect(new["tools"] == list["tools"])
    }
}
