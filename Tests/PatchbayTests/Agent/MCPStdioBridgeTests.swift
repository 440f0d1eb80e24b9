import Client
import Glibc
import Model
import TestSupport
import Testing

@testable import patchbay

@Suite struct MCPStdioBridgeTests {
    private static let initialize =
        #"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}"#
    private static let initialized = #"{"jsonrpc":"2.0","method":"notifications/initialized"}"#
    private static let welcome = FakeMCPServer.json(
        #"{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-06-18"}}"#,
        headers: "Mcp-Session-Id: s1\r\n"
    )

    private static func call(_ id: Int, _ tool: String, modern: Bool = false) -> String {
        let meta = modern ? #","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}"# : ""
        return #"{"jsonrpc":"2.0","id":\#(id),"method":"tools/call","params":{"name":"\#(tool)"\#(meta)}}"#
    }

    private static func answer(_ id: Int) -> String { #"{"jsonrpc":"2.0","id":\#(id),"result":{}}"# }

    /// Returns the JSON-RPC ID of a received request.
    private static func id(_ request: String) -> Int {
        let field = request.firstRange(of: #""id":"#)
        return field.flatMap { Int(request[$0.upperBound...].prefix { $0.isNumber }) } ?? -1
    }

    @Test func `requests carry the session ID and the negotiated protocol version`() async throws {
        try await BridgeFixture.with { request in
            if request.hasPrefix("GET") { return FakeMCPServer.json("", status: "405 Method Not Allowed") }
            if request.contains("initialized") { return FakeMCPServer.json("", status: "202 Accepted") }
            return request.contains(#""initialize""#) ? Self.welcome : FakeMCPServer.json(Self.answer(Self.id(request)))
        } _: { fixture in
            fixture.write(Self.initialize)
            let welcome = try await fixture.read(1)
            #expect(welcome.first?["result"]?["protocolVersion"] == "2025-06-18")
            fixture.write(Self.initialized, Self.call(7, "endpoint_list"))

            let answers = try await fixture.read(1)
            #expect(answers.first?["id"] == 7)
            let requests = fixture.server.requests
            #expect(requests.first?.hasPrefix("POST /mcp HTTP/1.1\r\n") == true)
            #expect(requests.first?.contains("Accept: application/json, text/event-stream\r\n") == true)
            #expect(requests.first?.contains("Mcp-Session-Id") == false)
            let last = requests.first { $0.contains("endpoint_list") }
            #expect(last?.contains("Mcp-Session-Id: s1\r\n") == true)
            #expect(last?.contains("MCP-Protocol-Version: 2025-06-18\r\n") == true)
        }
    }

    @Test func `a stateless request has the protocol headers`() async throws {
        let broker = ListBroker([SampleEndpoints.endpoint("shop", on: "pixel")])
        try await BridgeFixture.with(at: .endpoint("shop-pixel")) { request in
            broker.answer(request) { FakeMCPServer.json(Self.answer(Self.id($0))) }
        } _: { fixture in
            fixture.write(Self.call(1, "naïve", modern: true))

            let lines = try await fixture.read(1)
            #expect(lines.first?["id"] == 1)
            let head = fixture.server.requests.last ?? ""
            #expect(head.hasPrefix("POST /e/shop-pixel/mcp HTTP/1.1\r\n"))
            #expect(head.contains("MCP-Protocol-Version: 2026-07-28\r\n"))
            #expect(head.contains("Mcp-Method: tools/call\r\n"))
            #expect(head.contains("Mcp-Name: =?base64?bmHDr3Zl?=\r\n"))
        }
    }

    @Test func `an event without a message writes no line`() async throws {
        try await BridgeFixture.with { request in
            let result = Self.answer(Self.id(request))
            let opening = "id: call-MQ==\nretry: 1000\ndata:\n\n"
            return .whole(
                "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n\(opening): idle\n\ndata: \(result)\n\n"
            )
        } _: { fixture in
            fixture.write(Self.call(1, "slow"))

            // An empty line is no JSON.
            let lines = try await fixture.read(1)
            #expect(lines.first?["id"] == 1)
        }
    }

    @Test func `stream messages are forwarded immediately, and a slow response does not block another`() async throws {
        try await BridgeFixture.with { request in
            switch Self.id(request) {
            case 1: .open(FakeMCPServer.events([#"{"jsonrpc":"2.0","method":"notifications/progress"}"#]))
            default: FakeMCPServer.json("{\"jsonrpc\":\"2.0\",\r\n \"id\":2,\"result\":{}}")
            }
        } _: { fixture in
            fixture.write(Self.call(1, "slow"), Self.call(2, "quick"))

            let lines = try await fixture.read(2)
            #expect(Set(lines.map { $0["method"] }) == [nil, "notifications/progress"])
            #expect(lines.contains { $0["id"] == 2 })
            fixture.write(#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#)
            try await fixture.waitForRequests(3)
        }
    }

    @Test func `a stateless request is cancelled only by closing its stream`() async throws {
        try await BridgeFixture.with { request in
            Self.id(request) == 1 ? .silence : FakeMCPServer.json(Self.answer(2))
        } _: { fixture in
            fixture.write(Self.call(1, "slow", modern: true))
            try await fixture.waitForRequests(1)
            fixture.write(#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#)
            fixture.write(Self.call(2, "quick", modern: true))

            let lines = try await fixture.read(1)
            #expect(lines.first?["id"] == 2)
            #expect(fixture.server.requests.count == 2)
        }
    }

    @Test func `a client that closes the output ends the bridge and its requests, also while the input is open`()
        async throws
    {
        let server = FakeMCPServer { _ in .silence }
        try await server.open()
        var (input, output): ([CInt], [CInt]) = ([0, 0], [0, 0])
        try #require(pipe(&input) == 0 && pipe(&output) == 0)
        let reader = LineInput(input[0])
        let bridge = MCPStdioBridge(
            resolver: TargetResolver(.broker) { PatchbayClient(address: .unix(path: server.path)) },
            output: LineWriter(output[1]),
            log: { _ in }
        )

        let line = Self.call(1, "slow", modern: true) + "\n"
        write(input[1], line, line.utf8.count)
        async let ending: Void = bridge.run(reader)
        try await eventually("the request is sent") { server.requests.count == 1 }
        close(output[0])

        do {
            try await ending
            Issue.record("the bridge ends with an error")
        } catch is BrokenPipe {}
        try await eventually("the request is cancelled") { server.abandoned == 1 }
        for end in [input[0], input[1], output[1]] { close(end) }
        try await server.shut()
    }

    @Test func `a byte order mark in front of a line is not forwarded`() async throws {
        try await BridgeFixture.with { request in
            FakeMCPServer.json(Self.answer(Self.id(request)))
        } _: { fixture in
            fixture.write("\u{FEFF}" + Self.call(1, "one", modern: true))

            let lines = try await fixture.read(1)
            #expect(lines.first?["id"] == 1)
            #expect(fixture.server.requests.first?.contains("\u{FEFF}") == false)
        }
    }

    @Test func `lines are sent in order after the broker starts`() async throws {
        try await BridgeFixture.with(isOpen: false) {
            FakeMCPServer.json(Self.answer(Self.id($0)))
        } _: { fixture in
            fixture.write(Self.call(1, "tap"), Self.call(2, "tap"))
            try await ContinuousClock().sleep(for: .milliseconds(100))
            try await fixture.server.open()

            let answers = try await fixture.read(2)
            #expect(answers.compactMap { $0["id"]?.int }.sorted() == [1, 2])
            #expect(fixture.server.requests.map(Self.id) == [1, 2])
        }
    }

    @Test func `a temporary rejection is retried for every request`() async throws {
        let problem = #"{"type":"urn:x","title":"No","status":503,"detail":"stopping","code":"unavailable"}"#
        let first = FirstOccurrence()
        try await BridgeFixture.with { request in
            first.isFirst(Self.id(request))
                ? FakeMCPServer.json(problem, status: "503 Service Unavailable") : FakeMCPServer.json(Self.answer(1))
        } _: { fixture in
            fixture.write(Self.call(1, "endpoint_call"))

            let answers = try await fixture.read(1)
            #expect(answers.first?["result"] == [:])
            #expect(fixture.server.requests.count == 2)
            #expect(fixture.messages == ["stopping; retrying"])
        }
    }

    @Test func `a request with a lost response is retried only if it is idempotent`() async throws {
        let first = FirstOccurrence()
        try await BridgeFixture.with { request in
            first.isFirst(Self.id(request)) ? .cut : FakeMCPServer.json(Self.answer(Self.id(request)))
        } _: { fixture in
            fixture.write(Self.call(1, "endpoint_call"), Self.call(2, "endpoint_list"))

            let lines = try await fixture.read(2)
            let lost = lines.first { $0["id"] == 1 }?["result"]
            #expect(lost?["isError"] == true)
            #expect(lost?["content"]?.array?.first?["text"]?.string?.hasPrefix("result unknown") == true)
            #expect(lines.first { $0["id"] == 2 }?["result"] == [:])
            #expect(fixture.server.requests.map(Self.id).sorted() == [1, 2, 2])
        }
    }

    @Test func `a subscription is renewed after a restart and acknowledged once`() async throws {
        let listen = #"{"jsonrpc":"2.0","id":5,"method":"subscriptions/listen","params":{}}"#
        let news = [
            #"{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged"}"#,
            #"{"jsonrpc":"2.0","method":"notifications/resources/updated"}"#,
        ]
        try await BridgeFixture.with { _ in
            .open(FakeMCPServer.events(news))
        } _: { fixture in
            fixture.write(listen)
            let first = try await fixture.read(2)
            #expect(first.last?["method"] == "notifications/resources/updated")

            try await fixture.server.shut()
            try await fixture.server.open()

            let second = try await fixture.read(1)
            #expect(second.last?["method"] == "notifications/resources/updated")
        }
    }

    @Test func `the server's own messages continue after a restart`() async throws {
        try await BridgeFixture.with { request in
            if request.hasPrefix("GET") {
                return .open(FakeMCPServer.events([#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#]))
            }
            return request.contains(#""initialize""#) ? Self.welcome : FakeMCPServer.json("", status: "202 Accepted")
        } _: { fixture in
            fixture.write(Self.initialize, Self.initialized)
            let first = try await fixture.read(2)
            #expect(first.last?["method"] == "notifications/tools/list_changed")

            try await fixture.server.shut()
            try await fixture.server.open()

            let second = try await fixture.read(1)
            #expect(second.first?["method"] == "notifications/tools/list_changed")
            let streams = fixture.server.requests.filter { $0.hasPrefix("GET") }
            #expect(streams.count == 2)
            #expect(streams.last?.contains("Mcp-Session-Id: s1\r\n") == true)
        }
    }

    @Test func `a rejection becomes an error response with its hint`() async throws {
        let problem = #"{"type":"urn:x","title":"No","status":404,"detail":"no shop","code":"not-found","hint":"look"}"#
        try await BridgeFixture.with { request in
            switch Self.id(request) {
            case 1: FakeMCPServer.json(problem, status: "404 Not Found")
            case 2:
                FakeMCPServer.json(
                    #"{"jsonrpc":"2.0","error":{"code":-32022,"message":"m"}}"#,
                    status: "400 Bad Request"
                )
            default: FakeMCPServer.json("gone", status: "410 Gone")
            }
        } _: { fixture in
            fixture.write(Self.call(1, "a"), Self.call(2, "b"), #"{"jsonrpc":"2.0","method":"notifications/x"}"#)

            let lines = try await fixture.read(2)
            let refused = lines.first { $0["id"] == 1 }?["result"]
            #expect(refused?["isError"] == true)
            #expect(refused?["content"]?.array?.first?["text"] == "no shop\ntry: look")
            #expect(lines.first { $0["id"] == 2 }?["error"]?["code"] == -32_022)
            try await fixture.waitForRequests(3)
            for _ in 0..<100 where fixture.messages.isEmpty {
                try await ContinuousClock().sleep(for: .milliseconds(10))
            }
            #expect(fixture.messages == ["notifications/x was rejected: the broker responded with status 410"])
        }
    }

    @Test func `an invalid line gets a parse error, and the next line is processed`() async throws {
        try await BridgeFixture.with {
            FakeMCPServer.json(Self.answer(Self.id($0)))
        } _: { fixture in
            fixture.write("{oops", "", Self.call(3, "x"))

            let answers = try await fixture.read(2)
            #expect(answers.map { $0["error"]?["code"] ?? $0["id"] } == [-32_700, 3])
        }
    }

    @Test func `a batch is sent as one POST`() async throws {
        try await BridgeFixture.with { _ in
            FakeMCPServer.json("[\(Self.answer(1)),\(Self.answer(2))]")
        } _: { fixture in
            fixture.write("[\(Self.call(1, "a")),\(Self.call(2, "b"))]")

            let answers = try await fixture.read(1)
            #expect(answers.first?.array?.count == 2)
            #expect(fixture.server.requests.count == 1)
        }
    }

    @Test(arguments: [
        (#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#, "not an object"),
        (#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, "not null"),
        (#"{"jsonrpc":"2.0","id":[1],"method":"tools/call"}"#, "not a list"), ("17", "not a number"),
    ])
    func `an invalid JSON-RPC request gets an error and is not sent`(line: String, what: String) async throws {
        try await BridgeFixture.with { _ in
            .silence
        } _: { fixture in
            fixture.write(line)

            let answer = try await fixture.read(1).first
            #expect(answer?["error"]?["code"] == -32_600)
            #expect(answer?["error"]?["message"]?.string?.contains(what) == true)
            #expect(answer?["id"] == nil)
            #expect(fixture.server.requests.isEmpty)
        }
    }

    @Test(arguments: [404, 403])
    func `a rejection has its reason, also without a request ID`(status: Int) async throws {
        let problem =
            #"{"type":"urn:x","title":"No","status":\#(status),"detail":"no such thing","#
            + #""code":"not-found","hint":"patchbay list"}"#
        try await BridgeFixture.with { _ in
            FakeMCPServer.json(problem, status: "\(status) No")
        } _: { fixture in
            fixture.write(Self.call(1, "tap"))
            let answer = try await fixture.read(1).first
            #expect(answer?["id"] == 1)
            #expect(answer?["result"]?["content"]?.array?.first?["text"] == "no such thing\ntry: patchbay list")

            for batch in ["[" + Self.call(2, "tap") + "]", "[]"] {
                fixture.write(batch)
                let answer = try await fixture.read(1).first
                #expect(answer?["error"]?["message"] == "no such thing; patchbay list")
            }

            fixture.write(Self.initialized)
            try await fixture.waitForRequests(4)
        }
    }
}
