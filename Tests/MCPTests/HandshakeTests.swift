import JSON
import Testing

@testable import MCP

/// The revisions with a handshake, 2024-11-05 to 2025-11-25.
@Suite struct HandshakeTests {
    @Test(arguments: [
        ("2024-11-05", "2024-11-05"), ("2025-03-26", "2025-03-26"), ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"), ("2026-07-28", "2025-11-25"), ("1900-01-01", "2025-11-25"),
    ])
    func `a handshake agrees on what the client asked for, or on the newest that has one`(
        asked: String,
        agreed: String
    ) async throws {
        let body = DoorBench.request("initialize", ["protocolVersion": .string(asked), "capabilities": [:]])

        let (status, json) = try await DoorBench().json(DoorBench.call(body))

        #expect(status == 200)
        #expect(json?["result"]?["protocolVersion"] == .string(agreed))
        #expect(json?["result"]?["serverInfo"]?["name"] == "scripted")
        #expect(json?["result"]?["resultType"] == nil)
        #expect((json?["result"]?["serverInfo"]?["title"] == nil) == (agreed < "2025-06-18"))
        #expect((json?["result"]?["serverInfo"]?["websiteUrl"] == nil) == (agreed < "2025-11-25"))
    }

    @Test func `a handshake without a revision is refused`() async throws {
        let (_, json) = try await DoorBench().json(DoorBench.call(DoorBench.request("initialize", [:])))

        #expect(json?["error"]?["code"] == -32_602)
    }

    @Test func `a result has nothing of 2026-07-28 in it`() async throws {
        let server = ScriptedServer { _ throws(RPCError) in
            ["tools": [], "resultType": "complete", "ttlMs": 5, "cacheScope": "public"]
        }

        let (status, json) = try await DoorBench(server).json(DoorBench.call(DoorBench.request("tools/list")))

        #expect(status == 200)
        #expect(json == ["jsonrpc": "2.0", "id": 1, "result": ["tools": []]])
    }

    @Test func `an unknown method is an error with status 200`() async throws {
        let (status, json) = try await DoorBench().json(DoorBench.call(DoorBench.request("no/such")))

        #expect(status == 200)
        #expect(json?["error"]?["code"] == -32_601)
    }

    @Test(arguments: [#""\ud800""#, #""a\udc00b""#, #""\ud800\u0041""#])
    func `an id that would not come back the same is refused`(
        id: String
    ) async throws {
        let bench = DoorBench()
        let body = #"{"jsonrpc":"2.0","id":\#(id),"method":"tools/list"}"#

        let (status, json) = try await bench.json(DoorBench.call(nil, bytes: Array(body.utf8)))

        #expect(status == 400)
        #expect(json?["error"]?["code"] == -32_600)
        #expect(json?["id"] == nil)
        #expect(bench.server.requests.isEmpty)
    }

    @Test func `ping is answered here, and the log level also where the server knows none`() async throws {
        let bench = DoorBench()

        #expect(try await bench.json(DoorBench.call(DoorBench.request("ping", id: "a"))).1?["result"] == [:])
        #expect(bench.server.requests.isEmpty)
        let level = DoorBench.request("logging/setLevel", ["level": "debug"])
        #expect(try await bench.json(DoorBench.call(level)).1?["result"] == [:])
    }

    @Test func `a revision that nobody knows is refused with 400, and the names of those that are known`() async throws
    {
        let call = DoorBench.call(DoorBench.request("tools/list"), headers: ["MCP-Protocol-Version": ["2099-01-01"]])

        let (status, json) = try await DoorBench().json(call)

        #expect(status == 400)
        #expect(json?["error"]?["data"]?["supported"]?.array?.count == 5)
    }

    @Test func `what a strict reader of an old revision would fail at is put into words it knows`() async throws {
        let server = ScriptedServer { _ throws(RPCError) in
            [
                "content": [["type": "resource_link", "uri": "patchbay://artifact/ab", "name": "ab"]],
                "structuredContent": [1, 2],
            ]
        }
        let body = DoorBench.request("tools/call", ["name": "shot"])

        let old = try await DoorBench(server).json(DoorBench.call(body)).1?["result"]
        let new = try await DoorBench(server).json(
            DoorBench.call(body, headers: ["MCP-Protocol-Version": ["2025-06-18"]])
        ).1?["result"]

        #expect(old?["content"]?.array?.first?["type"] == "text")
        #expect(new?["content"]?.array?.first?["type"] == "resource_link")
        #expect(old?["structuredContent"] == nil && new?["structuredContent"] == nil)
    }

    @Test func `an app's question, which the revision cannot carry, is an error that says so`() async throws {
        let server = ScriptedServer { _ throws(RPCError) in ["resultType": "input_required", "requestState": "x"] }

        let (_, json) = try await DoorBench(server).json(
            DoorBench.call(DoorBench.request("tools/call", ["name": "ask"]))
        )

        #expect(json?["result"]?["isError"] == true)
        #expect(json?["result"]?["content"]?.array?.first?["text"]?.string?.contains("cannot be asked") == true)
    }

    @Test(arguments: [
        ("{", -32_700), ("", -32_700), ("{\"a\":1,\"a\":2}", -32_700), ("[]", -32_600), ("1", -32_600),
        ("{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"ping\"}", -32_600), ("{\"jsonrpc\":\"2.0\",\"id\":1}", -32_600),
        ("{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"ping\"}", -32_600),
        ("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":[]}", -32_600),
    ])
    func `what is no message is a 400 with the reason`(body: String, code: Int) async throws {
        let call = MCPHTTPRequest(
            .post,
            headers: MCPRequestHeaders(values: { _ in [] }, fields: []),
            body: Array(body.utf8)
        )

        let (status, json) = try await DoorBench().json(call)

        #expect(status == 400)
        #expect(json?["error"]?["code"]?.int == code)
    }

    @Test func `a batch has one answer for each of its requests, in order`() async throws {
        let bench = DoorBench()
        let session = try await bench.handshake("2025-03-26")
        let batch: JSON = [
            DoorBench.request("tools/list", id: 1), ["jsonrpc": "2.0", "method": "notifications/initialized"],
            DoorBench.request("no/such", id: "b"), ["jsonrpc": "2.0", "id": 3],
        ]

        let (status, json) = try await bench.json(DoorBench.call(batch, headers: ["Mcp-Session-Id": [session]]))

        #expect(status == 200)
        #expect(json?.array?.map { $0["id"] } == [1, "b", 3])
        #expect(json?.array?.map { $0["error"]?["code"]?.int } == [nil, -32_601, -32_600])
    }

    @Test func `what the door answers by itself it answers in a batch, too`() async throws {
        let bench = DoorBench()
        let session = try await bench.handshake("2025-03-26")
        let batch: JSON = [
            DoorBench.request("ping", id: 1), DoorBench.request("logging/setLevel", ["level": "info"], id: 2),
            DoorBench.request("resources/subscribe", ["uri": "a:1"], id: 3), DoorBench.request("ping", id: 4),
            DoorBench.request("initialize", ["protocolVersion": "2025-03-26"], id: 5),
            DoorBench.request("resources/subscribe", [:], id: 6),
        ]

        let (status, json) = try await bench.json(DoorBench.call(batch, headers: ["Mcp-Session-Id": [session]]))

        #expect(status == 200)
        #expect(json?.array?.map { $0["id"] } == [1, 2, 3, 4, 5, 6])
        #expect(json?.array?.prefix(4).allSatisfy { $0["result"] == [:] } == true)
        #expect(json?.array?.suffix(2).map { $0["error"]?["code"]?.int } == [-32_600, -32_602])
    }

    @Test func `a batch of notifications alone is taken with 202`() async throws {
        let batch: JSON = [["jsonrpc": "2.0", "method": "notifications/initialized"]]

        #expect(try await DoorBench().json(DoorBench.call(batch)).status == 202)
    }

    @Test func `a revision without batches refuses one`() async throws {
        let call = DoorBench.call(
            [DoorBench.request("tools/list")],
            headers: ["MCP-Protocol-Version": ["2025-06-18"]]
        )

        #expect(try await DoorBench().json(call).status == 400)
    }

    @Test func `a caller that takes no JSON gets none`() async throws {
        let call = DoorBench.call(DoorBench.request("tools/list"), headers: ["Accept": ["text/html"]])

        let (status, json) = try await DoorBench().json(call)

        #expect(status == 406)
        #expect(json?["error"]?["message"] == "send the header Accept: application/json, text/event-stream")
    }

    @Test(arguments: [["application/json"], []])
    func `who asks for the stream and does not say that it takes one is told what to send`(accept: [String])
        async throws
    {
        let call = DoorBench.call(nil, .get, headers: ["Accept": accept])

        let (status, json) = try await DoorBench().json(call)

        #expect(status == 406)
        #expect(json?["error"]?["message"] == "send the header Accept: text/event-stream")
    }
}
