import AccessControl
import FoundationEssentials
import Model
import Samples
import Testing

@testable import Agents

@Suite struct AgentTableTests {
    private static let now = Date(timeIntervalSince1970: 1_800_000_000)
    private static let client = AgentSession.Client(
        name: SanitizedText("claude-code"),
        version: SanitizedText("2.1")
    )

    private func key(_ id: String) -> AgentTable.Key { AgentTable.Key(id: id, holder: "grant:g1") }

    private func call(_ tool: String) -> AgentSession.Call {
        AgentSession.Call(tool: SanitizedText(tool), endpoint: "shop-iphone", startedAt: Self.now)
    }

    @Test func `an agent has its program, its grant and its running calls`() throws {
        var table = AgentTable()
        let principal = Principal.holder([.endpointCall])
        table.touch(key("s1"), client: Self.client, of: principal, at: nil, now: Self.now)
        table.touch(key("s1"), client: nil, of: principal, at: nil, now: Self.now)
        let first = table.beginCall(call("tap"), of: key("s1"))
        _ = table.beginCall(call("type"), of: key("s1"))
        table.endCall(first, of: key("s1"))

        let agent = try #require(table.sessions(at: Self.now).first)
        #expect(agent.client == Self.client && agent.name.text == "test" && agent.grant == "g1" && agent.calls == 2)
        #expect(agent.inFlight.map(\.tool.text) == ["type"] && agent.lastCallAt == Self.now)
        #expect(agent.id.count == 16 && !agent.id.contains("s1"))
    }

    @Test func `an agent is listed for an hour after its last request, and until its session ends`() {
        var table = AgentTable()
        table.touch(key("s1"), client: nil, of: .sampleOwner, at: nil, now: Self.now)
        #expect(table.sessions(at: Self.now + 3_599).count == 1)
        #expect(table.sessions(at: Self.now + 3_600).isEmpty)
        _ = table.beginCall(call("tap"), of: key("s1"))
        #expect(table.sessions(at: Self.now + 7_200).count == 1)
        table.remove(key("s1"))
        #expect(table.sessions(at: Self.now).isEmpty)
    }

    @Test func `the oldest agent without a running call makes room`() {
        var table = AgentTable()
        for number in 0..<AgentTable.limit {
            table.touch(key("\(number)"), client: nil, of: .sampleOwner, at: nil, now: Self.now + Double(number))
        }
        _ = table.beginCall(call("tap"), of: key("0"))
        table.touch(key("new"), client: Self.client, of: .sampleOwner, at: nil, now: Self.now + 300)

        let sessions = table.sessions(at: Self.now + 300)
        #expect(sessions.count == AgentTable.limit)
        #expect(sessions.contains { $0.calls == 1 } && sessions.contains { $0.client == Self.client })
    }

    @Test func `a call of an agent that made room is not counted`() {
        var table = AgentTable()
        let number = table.beginCall(call("tap"), of: key("s1"))
        table.endCall(number, of: key("s1"))
        #expect(table.sessions(at: Self.now).isEmpty)
    }

    @Test func `clientInfo needs a name, and foreign text is sanitized`() {
        #expect(AgentSession.Client(nil) == nil)
        #expect(AgentSession.Client(["version": "1"]) == nil)
        #expect(AgentSession.Client(["name": "a\u{1B}[2J", "version": 1])?.name.text == "a\u{FFFD}[2J")
    }
}
