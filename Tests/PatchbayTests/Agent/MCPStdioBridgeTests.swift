import Client
import JSON
import Model
import Testing

@testable import patchbay

@Suite struct MCPStdioBridgeTests {
    private static let initialize =
        #"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}"#
    private static let initialized = #"{"jsonrpc":"2.0","method":"notifications/initialized"}"#
    private static let welcome = FakeDoor.json(
        #"{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-06-18"}}"#,
        headers: "Mcp-Session-Id: s1\r\n"
    )

    private static func call(_ id: Int, _ tool: String, modern: Bool = false) -> String {
        let meta = modern ? #","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}"# : ""
        return #"{"jsonrpc":"2.0","id":\#(id),"method":"tools/call","params":{"name":"\#(tool)"\#(meta)}}"#
    }

    private static func answer(_ id: Int) -> String { #"{"jsonrpc":"2.0","id":\#(id),"result":{}}"# }

    /// The id of a request, by what the fake door heard.
    private static func id(_ request: String) -> Int {
        let field = request.firstRange(of: #""id":"#)
        return field.flatMap { Int(request[$0.upperBound...].prefix { $0.isNumber }) } ?? -1
    }

    @Test func `a session is carried on with the id and the revision that the handshake gave`() async throws {
        try await ShimBench.with { request in
            if request.hasPrefix("GET") { return FakeDoor.json("", status: "405 Method Not Allowed") }
            if request.contains("initialized") { return FakeDoor.json("", status: "202 Accepted") }
            return request.contains(#""initialize""#) ? Self.welcome : FakeDoor.json(Self.answer(Self.id(request)))
        } _: { bench in
            bench.write(Self.initialize)
            let welcome = try await bench.read(1)
            #expect(welcome.first?["result"]?["protocolVersion"] == "2025-06-18")
            bench.write(Self.initialized, Self.call(7, "endpoint_list"))

            let answers = try await bench.read(1)
            #expect(answers.first?["id"] == 7)
            let requests = bench.door.requests
            #expect(requests.first?.hasPrefix("POST /mcp HTTP/1.1\r\n") == true)
            #expect(requests.first?.contains("Accept: application/json, text/event-stream\r\n") == true)
            #expect(requests.first?.contains("Mcp-Session-Id") == false)
            let last = requests.first { $0.contains("endpoint_list") }
            #expect(last?.contains("Mcp-Session-Id: s1\r\n") == true)
            #expect(last?.contains("MCP-Protocol-Version: 2025-06-18\r\n") == true)
        }
    }

    @Test func `a stateless request says in its head what it is about`() async throws {
        let id = try #require(EndpointID("shop"))
        try await ShimBench.with(at: .endpoint(id)) {
            FakeDoor.json(Self.answer(Self.id($0)))
        } _: { bench in
            bench.write(Self.call(1, "naïve", modern: true))

            let lines = try await bench.read(1)
            #expect(lines.first?["id"] == 1)
            let head = bench.door.requests.first ?? ""
            #expect(head.hasPrefix("POST /e/shop/mcp HTTP/1.1\r\n"))
            #expect(head.contains("MCP-Protocol-Version: 2026-07-28\r\n"))
            #expect(head.contains("Mcp-Method: tools/call\r\n"))
            #expect(head.contains("Mcp-Name: =?base64?bmHDr3Zl?=\r\n"))
        }
    }

    @Test func `what a stream says comes line by line, and a slow answer holds up no other`() async throws {
        try await ShimBench.with { request in
            switch Self.id(request) {
            case 1: .open(FakeDoor.events([#"{"jsonrpc":"2.0","method":"notifications/progress"}"#]))
            default: FakeDoor.json("{\"jsonrpc\":\"2.0\",\r\n \"id\":2,\"result\":{}}")
            }
        } _: { bench in
            bench.write(Self.call(1, "slow"), Self.call(2, "quick"))

            let lines = try await bench.read(2)
            #expect(Set(lines.map { $0["method"] }) == [nil, "notifications/progress"])
            #expect(lines.contains { $0["id"] == 2 })
            bench.write(#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#)
            try await bench.heard(3)
        }
    }

    @Test func `a stateless request is cancelled by closing its stream, and by nothing else`() async throws {
        try await ShimBench.with { request in
            Self.id(request) == 1 ? .silence : FakeDoor.json(Self.answer(2))
        } _: { bench in
            bench.write(Self.call(1, "slow", modern: true))
            try await bench.heard(1)
            bench.write(#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#)
            bench.write(Self.call(2, "quick", modern: true))

            let lines = try await bench.read(1)
            #expect(lines.first?["id"] == 2)
            #expect(bench.door.requests.count == 2)
        }
    }

    @Test func `lines wait in their order for a broker that is not there yet`() async throws {
        try await ShimBench.with(isOpen: false) {
            FakeDoor.json(Self.answer(Self.id($0)))
        } _: { bench in
            bench.write(Self.call(1, "tap"), Self.call(2, "tap"))
            try await ContinuousClock().sleep(for: .milliseconds(100))
            try await bench.door.open()

            let answers = try await bench.read(2)
            #expect(answers.compactMap { $0["id"]?.int }.sorted() == [1, 2])
            #expect(bench.door.requests.map(Self.id) == [1, 2])
        }
    }

    @Test func `a broker that says not now is asked again, whatever the request`() async throws {
        let problem = #"{"type":"urn:x","title":"No","status":503,"detail":"stopping","code":"unavailable"}"#
        let first = FirstTime()
        try await ShimBench.with { request in
            first.is(Self.id(request))
                ? FakeDoor.json(problem, status: "503 Service Unavailable") : FakeDoor.json(Self.answer(1))
        } _: { bench in
            bench.write(Self.call(1, "endpoint_call"))

            let answers = try await bench.read(1)
            #expect(answers.first?["result"] == [:])
            #expect(bench.door.requests.count == 2)
            #expect(bench.said == ["stopping; waiting for it"])
        }
    }

    @Test func `an answer that was lost is asked for again only where that does no harm`() async throws {
        let first = FirstTime()
        try await ShimBench.with { request in
            first.is(Self.id(request)) ? .cut : FakeDoor.json(Self.answer(Self.id(request)))
        } _: { bench in
            bench.write(Self.call(1, "endpoint_call"), Self.call(2, "endpoint_list"))

            let lines = try await bench.read(2)
            let lost = lines.first { $0["id"] == 1 }?["result"]
            #expect(lost?["isError"] == true)
            #expect(lost?["content"]?.array?.first?["text"]?.string?.hasPrefix("delivered, result unknown") == true)
            #expect(lines.first { $0["id"] == 2 }?["result"] == [:])
            #expect(bench.door.requests.map(Self.id).sorted() == [1, 2, 2])
        }
    }

    @Test func `a subscription goes on when the broker is back, and is acknowledged once`() async throws {
        let listen = #"{"jsonrpc":"2.0","id":5,"method":"subscriptions/listen","params":{}}"#
        let news = [
            #"{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged"}"#,
            #"{"jsonrpc":"2.0","method":"notifications/resources/updated"}"#,
        ]
        try await ShimBench.with { _ in
            .open(FakeDoor.events(news))
        } _: { bench in
            bench.write(listen)
            let first = try await bench.read(2)
            #expect(first.last?["method"] == "notifications/resources/updated")

            try await bench.door.shut()
            try await bench.door.open()

            let second = try await bench.read(1)
            #expect(second.last?["method"] == "notifications/resources/updated")
        }
    }

    @Test func `what the server says by itself is heard again after a restart`() async throws {
        try await ShimBench.with { request in
            if request.hasPrefix("GET") {
                return .open(FakeDoor.events([#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#]))
            }
            return request.contains(#""initialize""#) ? Self.welcome : FakeDoor.json("", status: "202 Accepted")
        } _: { bench in
            bench.write(Self.initialize, Self.initialized)
            let first = try await bench.read(2)
            #expect(first.last?["method"] == "notifications/tools/list_changed")

            try await bench.door.shut()
            try await bench.door.open()

            let second = try await bench.read(1)
            #expect(second.first?["method"] == "notifications/tools/list_changed")
            let streams = bench.door.requests.filter { $0.hasPrefix("GET") }
            #expect(streams.count == 2)
            #expect(streams.last?.contains("Mcp-Session-Id: s1\r\n") == true)
        }
    }

    @Test func `a refusal is the answer, with what to do about it`() async throws {
        let problem = #"{"type":"urn:x","title":"No","status":404,"detail":"no shop","code":"not-found","next":"look"}"#
        try await ShimBench.with { request in
            switch Self.id(request) {
            case 1: FakeDoor.json(problem, status: "404 Not Found")
            case 2:
                FakeDoor.json(
                    #"{"jsonrpc":"2.0","error":{"code":-32022,"message":"m"}}"#,
                    status: "400 Bad Request"
                )
            default: FakeDoor.json("gone", status: "410 Gone")
            }
        } _: { bench in
            bench.write(Self.call(1, "a"), Self.call(2, "b"), #"{"jsonrpc":"2.0","method":"notifications/x"}"#)

            let lines = try await bench.read(2)
            #expect(lines.first { $0["id"] == 1 }?["error"]?["message"] == "no shop; look")
            #expect(lines.first { $0["id"] == 2 }?["error"]?["code"] == -32_022)
            try await bench.heard(3)
            for _ in 0..<100 where bench.said.isEmpty { try await ContinuousClock().sleep(for: .milliseconds(10)) }
            #expect(bench.said == ["notifications/x was refused: the broker answers with status 410"])
        }
    }

    @Test func `a line that is no JSON is answered, and the next one is read`() async throws {
        try await ShimBench.with {
            FakeDoor.json(Self.answer(Self.id($0)))
        } _: { bench in
            bench.write("{oops", "", Self.call(3, "x"))

            let answers = try await bench.read(2)
            #expect(answers.map { $0["error"]?["code"] ?? $0["id"] } == [-32_700, 3])
        }
    }

    @Test func `several messages in one line are one post`() async throws {
        try await ShimBench.with { _ in
            FakeDoor.json("[\(Self.answer(1)),\(Self.answer(2))]")
        } _: { bench in
            bench.write("[\(Self.call(1, "a")),\(Self.call(2, "b"))]")

            let answers = try await bench.read(1)
            #expect(answers.first?.array?.count == 2)
            #expect(bench.door.requests.count == 1)
        }
    }

    @Test(arguments: [
        (#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#, "not an object"),
        (#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, "not null"),
        (#"{"jsonrpc":"2.0","id":[1],"method":"tools/call"}"#, "not a list"), ("17", "not a number"),
    ])
    func `what is no request of JSON-RPC is answered, and not sent on`(line: String, what: String) async throws {
        try await ShimBench.with { _ in
            .silence
        } _: { bench in
            bench.write(line)

            let answer = try await bench.read(1).first
            #expect(answer?["error"]?["code"] == -32_600)
            #expect(answer?["error"]?["message"]?.string?.contains(what) == true)
            #expect(answer?["id"] == nil)
            #expect(bench.door.requests.isEmpty)
        }
    }

    @Test(arguments: [404, 403])
    func `a refusal says why, also where there is no id to answer to`(status: Int) async throws {
        let problem =
            #"{"type":"urn:x","title":"No","status":\#(status),"detail":"no such thing","#
            + #""code":"not-found","next":"patchbay list"}"#
        try await ShimBench.with { _ in
            FakeDoor.json(problem, status: "\(status) No")
        } _: { bench in
            bench.write(Self.call(1, "tap"))
            let answer = try await bench.read(1).first
            #expect(answer?["id"] == 1)
            #expect(answer?["error"]?["message"] == "no such thing; patchbay list")

            for batch in ["[" + Self.call(2, "tap") + "]", "[]"] {
                bench.write(batch)
                let answer = try await bench.read(1).first
                #expect(answer?["error"]?["message"] == "no such thing; patchbay list")
            }

            bench.write(Self.initialized)
            try await bench.heard(4)
        }
    }
}
