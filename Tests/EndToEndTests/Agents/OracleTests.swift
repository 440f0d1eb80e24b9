import TestSupport
import Testing

/// Checks every response of the MCP endpoints against the specification.
@Suite(.needs(.python), .scratchFolder) struct OracleTests {
    private let scratch = ScratchFolder.current

    @Test(.timeLimit(.minutes(6)))
    func `every response in every protocol version matches the schemas and the strict models`() async throws {
        let python = try await AgentPeer.Library.mcp2.interpreter(in: scratch)
        let app = try await SampleApp(in: scratch)
        let broker = try await RunningBroker(
            in: scratch,
            configuration: """
                [[endpoint]]
                name = "shop"
                kind = "appreveal"
                address = "127.0.0.1"
                port = \(app.port)
                app = "\(app.bundle)"
                """
        )
        let rows = try await broker.ask("list", "--json").joined()
        let id = try #require(rows.firstMatch(of: #/"id":"([a-z0-9-]+)"/#)).1

        let script = "\(AgentPeer.folder)/oracle.py"
        let oracle = try await Program(python, [script, broker.socket, String(id)], in: scratch)

        let status = try await oracle.exitStatus(within: .seconds(90))
        for await _ in oracle.transcript.elements() {}
        #expect(status == .exited(0), "\(oracle.output.filter { !$0.hasPrefix("ok") }) \(oracle.log.suffix(600))")
        #expect(oracle.output.count { $0.hasPrefix("ok") } > 150)
    }
}
