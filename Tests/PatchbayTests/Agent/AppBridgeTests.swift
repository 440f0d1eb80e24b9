import Model
import Testing

@testable import patchbay

@Suite struct AppBridgeTests {
    private static let app = "com.example.shop"
    private static let iphone = SampleEndpoints.endpoint(app, on: "test-iphone")
    private static let pixel = SampleEndpoints.endpoint(app, on: "pixel")

    private static func initialize(elicitation: Bool) -> String {
        let capabilities = elicitation ? #"{"elicitation":{}}"# : "{}"
        return
            #"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":"#
            + capabilities + "}}"
    }

    private static func call(_ id: Int, _ tool: String = "tap", arguments: String = "{}") -> String {
        #"{"jsonrpc":"2.0","id":\#(id),"method":"tools/call","params":{"name":"\#(tool)","arguments":\#(arguments)}}"#
    }

    /// Answers each call with the path of its server.
    private static func path(_ request: String) -> FakeMCPServer.Response {
        let path = request.split(separator: " ").dropFirst().first ?? ""
        let id = request.firstRange(of: #""id":"#).map { request[$0.upperBound...].prefix { $0.isNumber } } ?? "0"
        return FakeMCPServer.json(
            #"{"jsonrpc":"2.0","id":\#(id),"result":{"tools":[],"content":[{"type":"text","text":"\#(path)"}]}}"#
        )
    }

    private static func text(_ response: JSON?) -> String? {
        response?["result"]?["content"]?.array?.first?["text"]?.string
    }

    private static func withBridge(
        _ broker: ListBroker,
        at subject: MCPSubject = .app(app),
        _ body: @Sendable @escaping (BridgeFixture) async throws -> Void
    ) async throws {
        try await BridgeFixture.with(at: subject) {
            broker.answer($0, path)
        } _: {
            try await body($0)
        }
    }

    @Test func `the only phone with the app is used, and stays in use when another one appears`() async throws {
        let broker = ListBroker([Self.iphone])
        try await Self.withBridge(broker) { fixture in
            fixture.write(Self.initialize(elicitation: false), Self.call(1))
            let answer = try await Self.text(fixture.read(2).last)
            #expect(answer == "/e/\(Self.iphone.id)/mcp")

            var absent = Self.iphone
            absent.state = .offline
            broker.set([absent, Self.pixel])
            fixture.write(Self.call(2))
            let second = try await Self.text(fixture.read(1).last)
            #expect(second == "/e/\(Self.iphone.id)/mcp")
        }
    }

    @Test(arguments: [true, false])
    func `another endpoint never replaces a chosen one that is gone without a question`(elicits: Bool) async throws {
        let broker = ListBroker([Self.iphone])
        try await Self.withBridge(broker) { fixture in
            fixture.write(Self.initialize(elicitation: elicits), Self.call(1))
            #expect(try await Self.text(fixture.read(2).last) == "/e/\(Self.iphone.id)/mcp")

            broker.set([Self.pixel])
            fixture.write(Self.call(2))
            let answer = try await fixture.read(1).last
            let reason = elicits ? answer?["params"]?["message"]?.string : Self.text(answer)
            #expect(reason?.contains("the chosen endpoint \(Self.iphone.id) is gone") == true)
            if elicits {
                let id = answer?["id"]?.string ?? ""
                let choice = #"{"action":"accept","content":{"endpoint":"\#(Self.pixel.id)"}}"#
                fixture.write(#"{"jsonrpc":"2.0","id":"\#(id)","result":\#(choice)}"#)
            } else {
                fixture.write(Self.call(3, BridgeTool.choose, arguments: #"{"endpoint":"\#(Self.pixel.id)"}"#))
                #expect(Self.text(try await fixture.read(1).first)?.contains("Calls go to \(Self.pixel.id)") == true)
                fixture.write(Self.call(4))
            }
            #expect(try await Self.text(fixture.read(1).last) == "/e/\(Self.pixel.id)/mcp")
        }
    }

    @Test func `the phone on which the app runs is used`() async throws {
        var absent = Self.iphone
        absent.state = .offline
        try await Self.withBridge(ListBroker([absent, Self.pixel])) { fixture in
            fixture.write(Self.initialize(elicitation: false), Self.call(1))
            let answer = try await Self.text(fixture.read(2).last)
            #expect(answer == "/e/\(Self.pixel.id)/mcp")
        }
    }

    @Test func `of several phones the one under a lease of the grant is used`() async throws {
        let leases = [ListBroker.lease(of: Self.pixel)]
        try await Self.withBridge(ListBroker([Self.iphone, Self.pixel], leases: leases, hasGrant: true)) { fixture in
            fixture.write(Self.initialize(elicitation: true), Self.call(1))
            let answer = try await Self.text(fixture.read(2).last)
            #expect(answer == "/e/\(Self.pixel.id)/mcp")
        }
    }

    @Test func `a person's own lease does not choose the phone of an agent`() async throws {
        let leases = [ListBroker.lease(of: Self.pixel)]
        try await Self.withBridge(ListBroker([Self.iphone, Self.pixel], leases: leases)) { fixture in
            fixture.write(Self.initialize(elicitation: false), Self.call(1))
            let answer = try await fixture.read(2).last?["result"]?["isError"]
            #expect(answer == true)
        }
    }

    @Test func `a client that can be asked is asked once for all calls`() async throws {
        try await Self.withBridge(ListBroker([Self.iphone, Self.pixel])) { fixture in
            fixture.write(Self.initialize(elicitation: true), Self.call(1), Self.call(2))
            let question = try await fixture.read(2).last
            #expect(question?["method"] == "elicitation/create")
            let choices = question?["params"]?["requestedSchema"]?["properties"]?["endpoint"]?["enum"]
            #expect(choices == .array([Self.pixel, Self.iphone].map { .string($0.id.text) }))

            let id = question?["id"]?.string ?? ""
            fixture.write(
                #"{"jsonrpc":"2.0","id":"\#(id)","result":{"action":"accept","content":{"endpoint":"\#(Self.iphone.id)"}}}"#
            )
            let answers = try await fixture.read(2)
            #expect(answers.map(Self.text) == ["/e/\(Self.iphone.id)/mcp", "/e/\(Self.iphone.id)/mcp"])
        }
    }

    @Test func `a client that declines gets the candidates`() async throws {
        try await Self.withBridge(ListBroker([Self.iphone, Self.pixel])) { fixture in
            fixture.write(Self.initialize(elicitation: true), Self.call(1))
            let id = try await fixture.read(2).last?["id"]?.string ?? ""
            fixture.write(#"{"jsonrpc":"2.0","id":"\#(id)","result":{"action":"decline"}}"#)
            let answer = try await fixture.read(1).last
            #expect(answer?["result"]?["isError"] == true)
            #expect(Self.text(answer)?.contains(Self.pixel.id.text) == true)
        }
    }

    @Test func `a cancelled call withdraws its question`() async throws {
        try await Self.withBridge(ListBroker([Self.iphone, Self.pixel])) { fixture in
            fixture.write(Self.initialize(elicitation: true), Self.call(1))
            let id = try await fixture.read(2).last?["id"]
            fixture.write(#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#)
            let cancel = try await fixture.read(1).last
            #expect(cancel?["method"] == "notifications/cancelled")
            #expect(cancel?["params"]?["requestId"] == id)
        }
    }

    @Test func `a client that cannot be asked chooses with a tool`() async throws {
        try await Self.withBridge(ListBroker([Self.iphone, Self.pixel])) { fixture in
            fixture.write(
                Self.initialize(elicitation: false),
                Self.call(1),
                #"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#
            )
            let answers = try await fixture.read(3)
            let refusal = Self.text(answers.first { $0["id"] == 1 })
            #expect(refusal?.contains("runs on 2 phones, and none is chosen") == true)
            #expect(refusal?.contains("call the tool patchbay_choose_endpoint") == true)
            let tools = answers.first { $0["id"] == 2 }?["result"]?["tools"]?.array
            #expect(tools?.map { $0["name"] } == [.string(BridgeTool.choose)])

            fixture.write(Self.call(3, BridgeTool.choose, arguments: #"{"endpoint":"\#(Self.pixel.id)"}"#))
            #expect(Self.text(try await fixture.read(1).first)?.contains("Calls go to \(Self.pixel.id)") == true)
            fixture.write(Self.call(4))
            #expect(Self.text(try await fixture.read(1).first) == "/e/\(Self.pixel.id)/mcp")
        }
    }

    @Test func `a stateless client gets the question as a result and repeats the call with the answer`() async throws {
        let meta =
            #""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","#
            + #""io.modelcontextprotocol/clientCapabilities":{"elicitation":{"form":{}}}}"#
        let call = #"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"tap",\#(meta)"#
        try await Self.withBridge(ListBroker([Self.iphone, Self.pixel])) { fixture in
            fixture.write(call + "}}")
            let question = try await fixture.read(1).last?["result"]
            #expect(question?["resultType"] == "input_required")
            #expect(question?["inputRequests"]?["patchbay-endpoint"]?["method"] == "elicitation/create")

            let state = question?["requestState"]?.string ?? ""
            let answer = #"{"action":"accept","content":{"endpoint":"\#(Self.pixel.id)"}}"#
            fixture.write(call + #","requestState":"\#(state)","inputResponses":{"patchbay-endpoint":\#(answer)}}}"#)
            let result = try await Self.text(fixture.read(1).last)
            #expect(result == "/e/\(Self.pixel.id)/mcp")
            let sent = fixture.server.requests.last { $0.contains("tools/call") }
            #expect(sent?.contains("inputResponses") == false)
        }
    }

    @Test(arguments: [1, 2]) func `an unapproved app is never chosen`(count: Int) async throws {
        let pending = [Self.iphone, Self.pixel].prefix(count).map { endpoint in
            var endpoint = endpoint
            endpoint.approval = .pending
            return endpoint
        }
        try await Self.withBridge(ListBroker(pending)) { fixture in
            fixture.write(Self.initialize(elicitation: true), Self.call(1))
            let result = try await fixture.read(2).last?["result"]
            #expect(result?["isError"] == true)
            #expect(result?["structuredContent"]?["try"]?.string?.contains("patchbay approve") == true)
        }
    }

    @Test func `a registered app does not replace an absent one without a question`() async throws {
        var (absent, registered) = (Self.iphone, Self.pixel)
        absent.state = .offline
        registered.registered = true
        try await Self.withBridge(ListBroker([absent, registered])) { fixture in
            fixture.write(Self.initialize(elicitation: false), Self.call(1))
            let answer = try await fixture.read(2).last?["result"]?["isError"]
            #expect(answer == true)
        }
    }

    @Test func `a short name selects its endpoint at each call`() async throws {
        let other = SampleEndpoints.endpoint("com.example.pay", on: "pixel", name: "Pay")
        let broker = ListBroker([Self.iphone, other])
        try await Self.withBridge(broker, at: .endpoint("shop")) { fixture in
            fixture.write(Self.initialize(elicitation: false), Self.call(1))
            let answer = try await Self.text(fixture.read(2).last)
            #expect(answer == "/e/\(Self.iphone.id)/mcp")

            broker.set([Self.iphone, Self.pixel])
            fixture.write(Self.call(2))
            let second = try await Self.text(fixture.read(1).last)
            #expect(second?.contains("matches 2 endpoints") == true)
            broker.set([Self.pixel])
            fixture.write(Self.call(3))
            let third = try await Self.text(fixture.read(1).last)
            #expect(third == "/e/\(Self.pixel.id)/mcp")
        }
    }
}
