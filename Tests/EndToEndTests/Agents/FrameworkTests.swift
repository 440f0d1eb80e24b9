import FoundationEssentials
import TestSupport
import Testing

/// The MCP clients of agent frameworks keep their connection across restarts of the broker. Each framework is installed
/// once from PyPI: 17 to 28 s and 98 to 145 MB.
@Suite(.needs(.python), .timeLimit(.minutes(5)), .scratchFolder) struct FrameworkTests {
    private let scratch = ScratchFolder.current

    /// A framework; the requirements file has the same name.
    enum Framework: String, Sendable, CaseIterable {
        case smolagents
        case autogen = "autogen-ext"
        case pydanticAI = "pydantic-ai"
    }

    private struct Outcome: Decodable {
        let ok: Bool
        let text: String
    }

    @Test(arguments: Framework.allCases)
    func `a framework keeps its connection when the broker restarts, and when it is killed in a call`(
        framework: Framework
    ) async throws {
        let port = try FreePorts.take()[0]
        let app = try await SampleApp(in: scratch)
        let broker = try await RunningBroker(
            in: scratch,
            configuration: AgentBroker.configuration(port: port, shop: app)
        )
        let agent = try await AgentBroker(socket: broker.socket, port: port, in: scratch)
        let client = try await Self.client(framework, to: agent, in: scratch)
        #expect(try await Self.outcome(of: "get_screen", by: client).ok)

        try await broker.restart()

        #expect(try await Self.outcome(of: "get_screen", by: client).ok)

        let call = try Self.begin("wait", #"{"seconds": 20}"#, by: client)
        try await eventually("the app has the call") { app.program.output.contains("call: wait") }
        // The stream of a call begins after 100 ms.
        try await Task.sleep(for: .seconds(1))
        try await broker.restart(isKilled: true)

        // A client of 2026-07-28 is told by its library that the stream ended.
        let interrupted = try await Self.outcome(from: call, of: client)
        #expect(interrupted.text.contains("result unknown") || !interrupted.ok, "\(interrupted.text)")
        #expect(try await Self.outcome(of: "get_screen", by: client).ok)
        #expect(app.program.output.count { $0 == "call: wait" } == 1)
    }

    private static func client(_ framework: Framework, to agent: AgentBroker, in scratch: ScratchFolder) async throws
        -> Program
    {
        let interpreter = try await Program.run(
            "sh",
            ["\(AgentPeer.folder)/environment", framework.rawValue],
            in: scratch,
            within: .seconds(300)
        ).last
        let client = try await Program(
            try #require(interpreter),
            ["\(AgentPeer.folder)/framework.py", framework.rawValue, agent.url(of: "shop")],
            in: scratch,
            environment: ["PYTHONDONTWRITEBYTECODE": "1", "PYTHONWARNINGS": "ignore", "PATCHBAY_GRANT": agent.grant],
            input: .pipe
        )
        try await client.waitForLine(#"{"connected": true}"#, within: .seconds(60))
        return client
    }

    private static func begin(_ tool: String, _ arguments: String, by client: Program) throws -> Int {
        let start = client.transcript.soFar.count
        try client.write(#"{"tool": "\#(tool)", "arguments": \#(arguments)}"# + "\n")
        return start
    }

    private static func outcome(from start: Int, of client: Program) async throws -> Outcome {
        let line = try await client.waitForLine(#"{"ok": "#, from: start)
        return try JSONDecoder().decode(Outcome.self, from: Data(line.utf8))
    }

    private static func outcome(of tool: String, by client: Program) async throws -> Outcome {
        try await outcome(from: begin(tool, "{}", by: client), of: client)
    }
}
