import TestSupport
import Testing

/// The server scenarios of MCP's official conformance suite, through the real broker.
///
/// `scenarios.py` and `stateless_scenarios.py` have the scenarios, written anew from their descriptions, and `app.py` is the
/// server with the tools that they need. Left out are the extension of tasks, which Patchbay does not support, and
/// `server-sse-polling`, because a connection that the broker itself closes in the middle of a call has no use here.
@Suite(.needs(.python), .timeLimit(.minutes(3)), .scratchFolder) struct ConformanceTests {
    private let scratch = ScratchFolder.current
    private static let folder = String(#filePath.dropLast("/ConformanceTests.swift".count))

    @Test(arguments: [
        ("2024-11-05", "legacy", 22), ("2025-03-26", "legacy", 24), ("2025-06-18", "legacy", 25),
        ("2025-11-25", "legacy", 27), ("2026-07-28", "modern", 38),
    ])
    func `an app's URL passes every scenario of the version`(version: String, mode: String, count: Int) async throws {
        let (broker, port) = try await Self.broker(mode: mode, in: scratch)

        let results = try await Self.results(of: version, at: "/e/app/mcp", "app", broker, port, in: scratch)

        for result in results { #expect(result.hasPrefix("ok "), "\(version): \(result)") }
        #expect(results.count == count)
    }

    /// The app speaks another version than the client.
    @Test(arguments: [("2025-11-25", "modern"), ("2026-07-28", "legacy")])
    func `the broker's own URL passes the scenarios for every server`(version: String, mode: String) async throws {
        let (broker, port) = try await Self.broker(mode: mode, in: scratch)

        let results = try await Self.results(of: version, at: "/mcp", "broker", broker, port, in: scratch)
        let atApp = try await Self.results(of: version, at: "/e/app/mcp", "broker", broker, port, in: scratch)

        for result in results + atApp { #expect(result.hasPrefix("ok "), "\(version): \(result)") }
        #expect(results.count > 5 && results.count == atApp.count)
    }

    private static func broker(mode: String, in scratch: ScratchFolder) async throws -> (RunningBroker, UInt16) {
        let ports = try FreePorts.take(2)
        let app = try await Program("python3", ["\(folder)/app.py", "\(ports[0])", mode], in: scratch, input: .pipe)
        try await app.waitForLine("ready")
        let broker = try await RunningBroker(
            in: scratch,
            configuration: AgentBroker.configuration(port: ports[1])
                + "[[endpoint]]\nname = \"app\"\nkind = \"mcp\"\naddress = \"127.0.0.1\"\nport = \(ports[0])\n"
        )
        return (broker, ports[1])
    }

    private static func results(
        of version: String,
        at path: String,
        _ target: String,
        _ broker: RunningBroker,
        _ port: UInt16,
        in scratch: ScratchFolder
    ) async throws -> [String] {
        let agent = try await AgentBroker(socket: broker.socket, port: port, in: scratch)
        return try await Program.run(
            "python3",
            ["\(folder)/scenarios.py", "http://127.0.0.1:\(port)\(path)", agent.grant, version, target],
            in: scratch,
            environment: ["PYTHONDONTWRITEBYTECODE": "1"],
            within: .seconds(150)
        )
    }
}
