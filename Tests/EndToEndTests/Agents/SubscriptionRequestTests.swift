import TestSupport
import Testing

/// Subscriptions during a broker restart.
@Suite(.scratchFolder) struct SubscriptionRequestTests {
    private let scratch = ScratchFolder.current

    @Test func `subscriptions of clients with an older protocol version survive a broker restart`() async throws {
        let broker = try await RunningBroker(in: scratch)
        let client = try await broker.start("mcp", input: .pipe)
        func updates() -> Int {
            client.output.count { $0.contains("notifications/resources/updated") && $0.contains("endpoints") }
        }
        try client.write(
            #"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"#
                + #""clientInfo":{"name":"c","version":"1"}}}"# + "\n"
                + #"{"jsonrpc":"2.0","method":"notifications/initialized"}"# + "\n"
                + #"{"jsonrpc":"2.0","id":2,"method":"resources/subscribe","params":{"uri":"patchbay://endpoints"}}"#
                + "\n"
        )
        try await client.waitForLine(#""id":2"#)

        try await broker.restart()
        // The client has to read changes that it missed.
        try await eventually("it is back") { updates() == 1 }
        _ = try await broker.ask("add", "shop", "127.0.0.1:9", "--kind", "tcp")

        try await eventually("it is told") { updates() >= 2 }
    }
}
