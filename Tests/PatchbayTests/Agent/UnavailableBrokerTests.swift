import Model
import Testing

@testable import patchbay

@Suite struct UnavailableBrokerTests {
    private static let initialize =
        #"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}"#
    private static let initialized = #"{"jsonrpc":"2.0","method":"notifications/initialized"}"#
    private static let list = #"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#
    private static let tools = #"{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"tap"}]}}"#

    private static func call(_ id: Int, _ tool: String) -> String {
        #"{"jsonrpc":"2.0","id":\#(id),"method":"tools/call","params":{"name":"\#(tool)"}}"#
    }

    private static func names(_ response: JSON?) -> [JSON?]? {
        response?["result"]?["tools"]?.array?.map { $0["name"] }
    }

    @Test func `initialize succeeds without a broker, and the first call reports what is missing`() async throws {
        try await BridgeFixture.with(isOpen: false) { _ in
            .silence
        } _: { fixture in
            fixture.write(Self.initialize)
            let welcome = try await fixture.read(1).first?["result"]
            #expect(welcome?["protocolVersion"] == "2025-06-18")
            #expect(welcome?["capabilities"]?["tools"]?["listChanged"] == true)
            #expect(welcome?["instructions"]?.string?.contains("no broker listens at") == true)

            fixture.write(Self.list, Self.call(2, "endpoint_list"))
            let answers = try await fixture.read(2)
            #expect(Self.names(answers.first { $0["id"] == 1 }) == [.string(BridgeTool.status)])
            let refusal = answers.first { $0["id"] == 2 }?["result"]
            #expect(refusal?["isError"] == true)
            #expect(refusal?["structuredContent"]?["reason"]?.string?.contains("no broker listens at") == true)
            #expect(refusal?["structuredContent"]?["try"]?.string?.contains("patchbayd") == true)
        }
    }

    @Test func `the tools appear when the broker starts later`() async throws {
        let broker = ListBroker([])
        try await BridgeFixture.with(isOpen: false) { request in
            broker.answer(request) { _ in FakeMCPServer.json(Self.tools) }
        } _: { fixture in
            fixture.write(Self.initialize)
            _ = try await fixture.read(1)
            fixture.write(Self.initialized, Self.list)
            let answer = try await Self.names(fixture.read(1).first)
            #expect(answer == [.string(BridgeTool.status)])

            try await fixture.server.open()
            let second = try await fixture.read(1).first?["method"]
            #expect(second == "notifications/tools/list_changed")
            fixture.write(Self.list)
            let third = try await Self.names(fixture.read(1).first)
            #expect(third == ["tap"])
            let list = fixture.server.requests.last { $0.contains("tools/list") }
            #expect(list?.contains("Mcp-Session-Id: s1\r\n") == true)
        }
    }

    @Test func `the status tool reports that the tools are available again`() async throws {
        let broker = ListBroker([])
        try await BridgeFixture.with(isOpen: false) { request in
            broker.answer(request) { _ in FakeMCPServer.json(#"{"jsonrpc":"2.0","id":3,"result":{"tools":[]}}"#) }
        } _: { fixture in
            fixture.write(Self.initialize, Self.call(2, BridgeTool.status))
            let answer = try await fixture.read(2).last?["result"]?["isError"]
            #expect(answer == true)

            try await fixture.server.open()
            fixture.write(Self.call(3, BridgeTool.status))
            let text = try await fixture.read(1).last?["result"]?["content"]?.array?.first?["text"]
            #expect(text == "The tools are available now. List the tools again.")
        }
    }

    @Test func `a missing app is reported with the next step, and initialize succeeds`() async throws {
        let broker = ListBroker([])
        try await BridgeFixture.with(at: .app("com.example.shop")) { request in
            broker.answer(request) { _ in .silence }
        } _: { fixture in
            fixture.write(Self.initialize, Self.call(1, "tap"))
            let answers = try await fixture.read(2)
            #expect(answers.first?["result"]?["protocolVersion"] == "2025-06-18")
            let reason = answers.last?["result"]?["structuredContent"]?["reason"]
            #expect(reason == "the app com.example.shop has not run on any phone that the broker knows")
        }
    }

    @Test func `a missing grant is reported with the next step`() async throws {
        try await BridgeFixture.with { _ in
            ListBroker.document(Problem(.unauthorized, "no token", hint: "join"), status: "401 Unauthorized")
        } _: { fixture in
            fixture.write(Self.initialize, Self.list)
            let answers = try await fixture.read(2)
            #expect(answers.first?["result"]?["instructions"]?.string?.hasSuffix("no token\ntry: join") == true)
            #expect(Self.names(answers.last) == [.string(BridgeTool.status)])
        }
    }

    @Test func `a broker that lost its sessions gets a new handshake`() async throws {
        let first = FirstOccurrence()
        let unknown = #"{"jsonrpc":"2.0","error":{"code":-32600,"message":"unknown session ID: start a new session"}}"#
        let broker = ListBroker([])
        try await BridgeFixture.with { request in
            broker.answer(request) { _ in
                first.isFirst(0)
                    ? FakeMCPServer.json(unknown, status: "404 Not Found") : FakeMCPServer.json(Self.tools)
            }
        } _: { fixture in
            fixture.write(Self.initialize, Self.list)
            let answers = try await fixture.read(2)
            #expect(Self.names(answers.last) == ["tap"])
            #expect(fixture.server.requests.count { $0.contains(#""initialize""#) } == 2)
        }
    }
}
