import TestSupport
import Testing

/// An agent and an app that requires a token; only the app's 401 responses show that.
@Suite(.needs(.python), .scratchFolder) struct PairTests {
    private let scratch = ScratchFolder.current

    /// An agent connected through `patchbay mcp`.
    private final class Agent {
        private let shim: Program
        private var last = 1

        init(_ broker: RunningBroker) async throws {
            shim = try await broker.start("mcp", input: .pipe)
            let client = #"{"name": "tests", "version": "1"}"#
            let params = #"{"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": \#(client)}"#
            try shim.write(#"{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": \#(params)}"# + "\n")
            try await shim.waitForLine(#""id":1"#)
            try shim.write(#"{"jsonrpc": "2.0", "method": "notifications/initialized"}"# + "\n")
        }

        func call(_ tool: String, _ arguments: String) async throws -> String {
            last += 1
            let params = #"{"name": "\#(tool)", "arguments": \#(arguments)}"#
            let start = shim.transcript.soFar.count
            try shim.write(#"{"jsonrpc": "2.0", "id": \#(last), "method": "tools/call", "params": \#(params)}"# + "\n")
            return try await shim.waitForLine(#""id":\#(last)"#, from: start)
        }

        func pair(_ code: String? = nil) async throws -> String {
            try await call("endpoint_pair", #"{"endpoint": "shop"\#(code.map { #", "code": "\#($0)""# } ?? "")}"#)
        }

        func look() async throws -> String {
            try await call("endpoint_call", #"{"endpoint": "shop", "name": "launch_context", "waitSeconds": 0}"#)
        }
    }

    @Test func `an agent is told about a missing token at every launch until it sends the right one`()
        async throws
    {
        let tokens = ["5ec2e7ab", "0dd5ecab"].map { String(repeating: $0, count: 8) }
        let app = try await SampleApp(mode: .ios, token: tokens[0], in: scratch)
        let broker = try await RunningBroker(in: scratch, configuration: "[api]\ntcp = false\n")
        _ = try await broker.ask("add", "Shop", "127.0.0.1:\(app.port)", "--kind", "appreveal")
        let agent = try await Agent(broker)

        #expect(try await agent.pair().contains("needsCode"))
        #expect(try await agent.look().contains("token-required"))
        #expect(try await agent.call("endpoint_list", "{}").contains("needs token"))
        #expect(try await agent.pair(tokens[1]).contains("needsCode"))
        #expect(try await agent.pair(tokens[0]).contains("shop paired"))
        #expect(try await agent.look().contains("com.example.shop"))
        #expect(try await agent.pair().contains("shop paired"))

        try await app.quit()
        // A bare token sent before its launch exists.
        #expect(try await agent.pair(tokens[1]).contains("shop kept"))
        let again = try await SampleApp(mode: .ios, token: tokens[1], port: app.port, in: scratch)
        #expect(try await agent.call("endpoint_wait", #"{"endpoint": "shop"}"#).contains("online"))
        #expect(try await agent.look().contains("com.example.shop"))
        #expect(try await agent.pair().contains("shop paired"))

        // The 401 response reveals a new launch with a new token.
        try await again.quit()
        let other = try await SampleApp(mode: .ios, token: tokens[0], port: app.port, in: scratch)
        #expect(try await agent.pair().contains("needsCode"))
        #expect(try await agent.pair(tokens[0]).contains("shop paired"))
        #expect(try await agent.look().contains("com.example.shop"))
        try await other.quit()
    }
}
