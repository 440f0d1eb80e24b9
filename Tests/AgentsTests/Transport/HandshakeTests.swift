import Model
import Testing

@testable import Agents
@testable import Apps

/// The protocol versions with a handshake, 2024-11-05 to 2025-11-25.
@Suite struct HandshakeTests {
    @Test(arguments: [
        ("2024-11-05", "2024-11-05"), ("2025-03-26", "2025-03-26"), ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"), ("2026-07-28", "2025-11-25"), ("1900-01-01", "2025-11-25"),
    ])
    func `a handshake negotiates the requested version, or the latest one with a handshake`(
        asked: String,
        agreed: String
    ) async throws {
        let body = TransportFixture.request("initialize", ["protocolVersion": .string(asked), "capabilities": [:]])

        let (status, json) = try await TransportFixture().json(TransportFixture.call(body))

        #expect(status == 200)
        #expect(json?["result"]?["protocolVersion"] == .string(agreed))
        #expect(json?["result"]?["serverInfo"]?["name"] == "scripted")
        #expect(json?["result"]?["resultType"] == nil)
        #expect((json?["result"]?["serverInfo"]?["title"] == nil) == (agreed < "2025-06-18"))
        #expect((json?["result"]?["serverInfo"]?["websiteUrl"] == nil) == (agreed < "2025-11-25"))
    }

    @Test func `a handshake without a protocol version is rejected`() async throws {
        let (_, json) = try await TransportFixture().json(
            TransportFixture.call(TransportFixture.request("initialize", [:]))
        )

        #expect(json?["error"]?["code"] == -32_602)
    }

    @Test func `a result has no members of 2026-07-28`() async throws {
        let handler = ScriptedHandler { _ throws(RPCError) in
            ["tools": [], "resultType": "complete", "ttlMs": 5, "cacheScope": "public"]
        }

        let (status, json) = try await TransportFixture(handler).json(
            TransportFixture.call(TransportFixture.request("tools/list"))
        )

        #expect(status == 200)
        #expect(json == ["jsonrpc": "2.0", "id": 1, "result": ["tools": []]])
    }

    @Test(arguments: [
        ("prompts/list", "prompts"), ("resources/list", "resources"),
        ("resources/templates/list", "resourceTemplates"),
    ])
    func `a list that the handler does not have is empty`(method: String, member: String) async throws {
        let (status, json) = try await TransportFixture().json(TransportFixture.call(TransportFixture.request(method)))

        #expect(status == 200)
        #expect(json?["result"]?[member] == [])
    }

    @Test func `a client that accepts only events gets every response as an event`() async throws {
        let fixture = TransportFixture()
        let body = TransportFixture.request("initialize", ["protocolVersion": "2025-06-18", "capabilities": [:]])

        for (body, member) in [(body, "serverInfo"), (TransportFixture.request("tools/list"), "tools")] {
            let call = TransportFixture.call(body, headers: ["Accept": ["text/event-stream"]])
            let reply = try #require(try await fixture.reply(to: call))

            let text = String(decoding: reply.body, as: UTF8.self)
            #expect(reply.status == 200 && reply.headers.contains { $0.value == "text/event-stream" })
            let data = text.split(separator: "\n").first { $0.hasPrefix("data: ") }
            let json = try JSON(parsing: try #require(data).dropFirst(6).utf8)
            #expect(json["result"]?[member] != nil)
            if member == "serverInfo" { #expect(reply.headers.contains { $0.name == "Mcp-Session-Id" }) }
        }
    }

    @Test func `an unknown method is an error with status 200`() async throws {
        let (status, json) = try await TransportFixture().json(
            TransportFixture.call(TransportFixture.request("no/such"))
        )

        #expect(status == 200)
        #expect(json?["error"]?["code"] == -32_601)
    }

    @Test func `the transport answers ping, and the log level even if the handler does not support it`() async throws {
        let fixture = TransportFixture()

        #expect(
            try await fixture.json(TransportFixture.call(TransportFixture.request("ping", id: "a"))).1?["result"] == [:]
        )
        #expect(fixture.handler.requests.isEmpty)
        let level = TransportFixture.request("logging/setLevel", ["level": "debug"])
        #expect(try await fixture.json(TransportFixture.call(level)).1?["result"] == [:])
    }

    @Test func `an unknown protocol version is rejected with 400 and the list of supported ones`() async throws {
        let call = TransportFixture.call(
            TransportFixture.request("tools/list"),
            headers: ["MCP-Protocol-Version": ["2099-01-01"]]
        )

        let (status, json) = try await TransportFixture().json(call)

        #expect(status == 400)
        #expect(json?["error"]?["data"]?["supported"]?.array?.count == 5)
    }

    @Test func `a result is adapted so that strict clients of old versions accept it`() async throws {
        let handler = ScriptedHandler { _ throws(RPCError) in
            [
                "content": [["type": "resource_link", "uri": "patchbay://artifact/ab", "name": "ab"]],
                "structuredContent": [1, 2],
            ]
        }
        let body = TransportFixture.request("tools/call", ["name": "shot"])

        let old = try await TransportFixture(handler).json(TransportFixture.call(body)).1?["result"]
        let new = try await TransportFixture(handler).json(
            TransportFixture.call(body, headers: ["MCP-Protocol-Version": ["2025-06-18"]])
        ).1?["result"]

        #expect(old?["content"]?.array?.first?["type"] == "text")
        #expect(new?["content"]?.array?.first?["type"] == "resource_link")
        #expect(old?["structuredContent"] == nil && new?["structuredContent"] == nil)
    }

    @Test func `an app's input request that the version does not support is an error with that reason`() async throws {
        let handler = ScriptedHandler { _ throws(RPCError) in ["resultType": "input_required", "requestState": "x"] }

        let (_, json) = try await TransportFixture(handler).json(
            TransportFixture.call(TransportFixture.request("tools/call", ["name": "ask"]))
        )

        #expect(json?["result"]?["isError"] == true)
        #expect(json?["result"]?["content"]?.array?.first?["text"]?.string?.contains("does not support that") == true)
    }

    @Test(arguments: [
        ("{", -32_700), ("", -32_700), ("{\"a\":1,\"a\":2}", -32_700), ("[]", -32_600), ("1", -32_600),
        ("{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"ping\"}", -32_600), ("{\"jsonrpc\":\"2.0\",\"id\":1}", -32_600),
        ("{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"ping\"}", -32_600),
        ("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":[]}", -32_600),
    ])
    func `an invalid message is rejected with 400 and the reason`(body: String, code: Int) async throws {
        let call = MCPHTTPRequest(
            .post,
            headers: MCPRequestHeaders(values: { _ in [] }, fields: []),
            body: Array(body.utf8)
        )

        let (status, json) = try await TransportFixture().json(call)

        #expect(status == 400)
        #expect(json?["error"]?["code"]?.int == code)
    }

    @Test func `a batch has one response per request, in order`() async throws {
        let fixture = TransportFixture()
        let session = try await fixture.handshake("2025-03-26")
        let batch: JSON = [
            TransportFixture.request("tools/list", id: 1), ["jsonrpc": "2.0", "method": "notifications/initialized"],
            TransportFixture.request("no/such", id: "b"), ["jsonrpc": "2.0", "id": 3],
        ]

        let (status, json) = try await fixture.json(
            TransportFixture.call(batch, headers: ["Mcp-Session-Id": [session]])
        )

        #expect(status == 200)
        #expect(json?.array?.map { $0["id"] } == [1, "b", 3])
        #expect(json?.array?.map { $0["error"]?["code"]?.int } == [nil, -32_601, -32_600])
    }

    @Test func `requests that the transport answers itself work in a batch too`() async throws {
        let fixture = TransportFixture()
        let session = try await fixture.handshake("2025-03-26")
        let batch: JSON = [
            TransportFixture.request("ping", id: 1),
            TransportFixture.request("logging/setLevel", ["level": "info"], id: 2),
            TransportFixture.request("resources/subscribe", ["uri": "a:1"], id: 3),
            TransportFixture.request("ping", id: 4),
            TransportFixture.request("initialize", ["protocolVersion": "2025-03-26"], id: 5),
            TransportFixture.request("resources/subscribe", [:], id: 6),
        ]

        let (status, json) = try await fixture.json(
            TransportFixture.call(batch, headers: ["Mcp-Session-Id": [session]])
        )

        #expect(status == 200)
        #expect(json?.array?.map { $0["id"] } == [1, 2, 3, 4, 5, 6])
        #expect(json?.array?.prefix(4).allSatisfy { $0["result"] == [:] } == true)
        #expect(json?.array?.suffix(2).map { $0["error"]?["code"]?.int } == [-32_600, -32_602])
    }

    @Test func `a batch of notifications only is accepted with 202`() async throws {
        let batch: JSON = [["jsonrpc": "2.0", "method": "notifications/initialized"]]

        #expect(try await TransportFixture().json(TransportFixture.call(batch)).status == 202)
    }
}
