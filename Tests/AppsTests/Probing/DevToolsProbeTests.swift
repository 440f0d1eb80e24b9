import Model
import SystemIO
import TestSupport
import Testing

@testable import Apps

@Suite struct DevToolsProbeTests {
    private func server(_ text: String, status: Int = 200) -> ServerIdentity? {
        DevToolsProbe.server(AppResponse(status: status, contentType: nil, body: Array(text.utf8)))
    }

    @Test(arguments: [
        #"{"Browser":"HeadlessChrome/140.0","Protocol-Version":"1.3","webSocketDebuggerUrl":"ws://h/A"}"#,
        #"{"Browser":"node.js/v20.1.0","Protocol-Version":"1.1"}"#,
        #"{"Browser":"Mobile JavaScript","Protocol-Version":"1.1"}"#,
    ])
    func `the versions of Chrome, Node and Metro are recognised`(body: String) {
        #expect(server(body)?.kind == .web)
    }

    @Test(arguments: [#"{"Browser":"x"}"#, "[]", "OK", "", #"{"Browser":1,"Protocol-Version":"1"}"#])
    func `another answer is no DevTools server`(body: String) {
        #expect(server(body) == nil)
    }
}

/// The list of pages of servers that behave like real ones.
@Suite(.scratchFolder) struct DevToolsClientTests {
    private let scratch = ScratchFolder.current

    private func pages(_ answer: @escaping @Sendable (_ path: String) -> String?) async throws -> DevToolsPages {
        let server = try LoopbackServer(in: scratch, http: answer)
        let client = DevToolsClient(dialer: NetworkPlanner(), timeout: .seconds(5))
        return try await client.pages(of: .network(NetworkRoute(address: "127.0.0.1", port: server.port)))
    }

    @Test func `a bridge that has only the old path lists its pages`() async throws {
        let list = #"[{"deviceId":"4711","deviceName":"Anna","url":"localhost:9222"}]"#

        let found = try await pages { $0 == "/json" ? list : nil }

        #expect(found.pages.map(\.title.text) == ["Anna"])
        #expect(found.pages.first?.webSocketPath == nil)
    }

    @Test func `a list beyond 1 MiB, a deep one and an object are errors`() async throws {
        let large = "[" + String(repeating: #"{"title":"x"},"#, count: 700_000) + "{}]"
        for list in [large, String(repeating: "[", count: 500_000), #"{"pages":[]}"#] {
            await #expect(throws: DevToolsError.self) { _ = try await pages { _ in list } }
        }
    }
}
