import FoundationEssentials
import TestSupport
import Testing

/// What servers and clients of the field really send, as public reports of other projects describe it: docs/interop.md.
@Suite(.needs(.python), .timeLimit(.minutes(3)), .scratchFolder) struct InteropTests {
    private let scratch = ScratchFolder.current
    static let folder = String(#filePath.dropLast("/InteropTests.swift".count))

    /// The number of cases makes sure that a module runs to its end.
    @Test(arguments: [
        ("servers", 53), ("lists", 26), ("results", 30), ("arguments", 18), ("clients", 38), ("lines", 11),
    ])
    func `a report about another program does not apply to Patchbay`(subject: String, count: Int) async throws {
        let (broker, agent) = try await Self.broker(in: scratch)

        let words = [broker.socket, "\(agent.port)", agent.grant, try Executable.built("patchbay")]
        let lines = try await Self.run("\(subject).py", words, in: scratch)

        for line in lines { #expect(line.hasPrefix("ok "), "\(subject): \(line)") }
        #expect(lines.count == count)
    }

    /// The recorded libraries; the files of `traces`.
    static let traces = [
        "agent-framework", "autogen-ext", "fastmcp-2", "fastmcp-4", "langchain-mcp-adapters", "llama-index-tools-mcp",
        "mcp-1", "mcp-2", "mcp-2-legacy", "mcp-use", "openai-agents", "pydantic-ai", "semantic-kernel", "smolagents",
        "strands-agents",
    ]

    @Test(arguments: traces)
    func `a recorded session of a client library gets the same responses`(trace: String) async throws {
        let port = try FreePorts.take(1)[0]
        let script = "\(Self.folder.dropLast("Interop".count))Conformance/app.py"
        let app = try await Program("python3", [script, "\(port)", "legacy"], in: scratch, input: .pipe)
        try await app.waitForLine("ready")
        let (_, agent) = try await Self.broker(
            "[[endpoint]]\nname = \"app\"\nkind = \"mcp\"\naddress = \"127.0.0.1\"\nport = \(port)\n",
            in: scratch
        )

        let words = ["\(agent.port)", agent.grant, "/e/app/mcp", "\(Self.folder)/traces/\(trace).json"]
        let lines = try await Self.run("replay.py", words, in: scratch)

        for line in lines { #expect(line.hasPrefix("ok "), "\(trace): \(line)") }
        #expect(lines.count >= 5)
    }

    private static func broker(
        _ endpoint: String = "",
        in scratch: ScratchFolder
    ) async throws -> (RunningBroker, AgentBroker) {
        let port = try FreePorts.take(1)[0]
        let broker = try await RunningBroker(
            in: scratch,
            configuration: AgentBroker.configuration(port: port) + endpoint
        )
        return (broker, try await AgentBroker(socket: broker.socket, port: port, in: scratch))
    }

    private static func run(_ script: String, _ words: [String], in scratch: ScratchFolder) async throws -> [String] {
        try await Program.run(
            "python3",
            ["\(folder)/\(script)"] + words,
            in: scratch,
            environment: ["PYTHONDONTWRITEBYTECODE": "1"],
            within: .seconds(150)
        )
    }
}
