import Model
import Synchronization
import Testing

@testable import Agents
@testable import Apps

/// MCP 2026-07-28: Streamable HTTP and the members of every result.
@Suite struct StatelessTests {
    @Test func `a result has its type, cache lifetime and server`() async throws {
        let (status, json) = try await TransportFixture().json(TransportFixture.stateless("tools/list"))

        #expect(status == 200)
        let result = json?["result"]
        #expect(result?["resultType"] == "complete")
        #expect(result?["ttlMs"] == 0)
        #expect(result?["cacheScope"] == "private")
        #expect(result?["_meta"]?["io.modelcontextprotocol/serverInfo"]?["name"] == "scripted")
    }

    @Test func `the handler gets the parameters without the protocol's own members`() async throws {
        let fixture = TransportFixture()

        let call = TransportFixture.stateless(
            "tools/call",
            ["name": "tap", "arguments": [:]],
            meta: ["progressToken": "p", "com.example/x": 1]
        )
        _ = try await fixture.json(call)

        let request = try #require(fixture.handler.requests.first)
        #expect(request.params["_meta"] == ["com.example/x": 1])
        #expect(request.capabilities["elicitation"] != nil)
        #expect(request.params["name"] == "tap")
    }

    @Test func `server/discover lists every protocol version and is not forwarded to the handler`() async throws {
        let (status, json) = try await TransportFixture().json(TransportFixture.stateless("server/discover"))

        #expect(status == 200)
        let versions = json?["result"]?["supportedVersions"]?.array?.compactMap(\.string)
        #expect(versions == ["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"])
        #expect(json?["result"]?["capabilities"]?["tools"] != nil)
        #expect(json?["result"]?["resultType"] == "complete")
    }

    @Test(arguments: [
        (["MCP-Protocol-Version": []], -32_020), (["MCP-Protocol-Version": ["2025-11-25"]], -32_020),
        (["Mcp-Method": []], -32_020), (["Mcp-Method": ["tools/list"]], -32_020),
        (["Mcp-Method": ["tools/call", "tools/call"]], -32_020), (["Mcp-Name": []], -32_020),
        (["Mcp-Name": ["other"]], -32_020), (["Mcp-Name": ["tap", "tap"]], -32_020),
        (["Mcp-Name": ["=?base64?dGF?="]], -32_020),
    ])
    func `a missing, repeated or contradictory header is rejected with 400`(
        headers: [String: [String]],
        code: Int
    ) async throws {
        let fixture = TransportFixture()

        let (status, json) = try await fixture.json(
            TransportFixture.stateless("tools/call", ["name": "tap"], headers: headers)
        )

        #expect(status == 400)
        #expect(json?["error"]?["code"]?.int == code)
        #expect(json?["id"] == 1)
        #expect(fixture.handler.requests.isEmpty)
    }

    @Test func `the header Mcp-Name may be encoded in Base64`() async throws {
        let call = TransportFixture.stateless("tools/call", ["name": "tap"], headers: ["Mcp-Name": ["=?base64?dGFw?="]])

        #expect(try await TransportFixture().json(call).status == 200)
    }

    @Test func `an unknown protocol version is rejected with the list of supported ones`() async throws {
        let call = TransportFixture.stateless(
            "tools/list",
            meta: ["io.modelcontextprotocol/protocolVersion": "2099-01-01"],
            headers: ["MCP-Protocol-Version": ["2099-01-01"]]
        )

        let (status, json) = try await TransportFixture().json(call)

        #expect(status == 400)
        #expect(json?["error"]?["code"] == -32_022)
        #expect(json?["error"]?["data"]?["requested"] == "2099-01-01")
        #expect(json?["error"]?["data"]?["supported"]?.array?.contains("2026-07-28") == true)
    }

    @Test func `a request with the header of 2026-07-28 but without its metadata is rejected`() async throws {
        let call = TransportFixture.call(
            TransportFixture.request("tools/list"),
            headers: ["MCP-Protocol-Version": ["2026-07-28"], "Mcp-Method": ["tools/list"]]
        )

        let (status, json) = try await TransportFixture().json(call)

        #expect(status == 400)
        #expect(json?["error"]?["code"] == -32_602)
    }

    @Test func `metadata without capabilities is rejected`() async throws {
        let call = TransportFixture.stateless("tools/list", meta: ["io.modelcontextprotocol/clientCapabilities": .null])

        let (status, json) = try await TransportFixture().json(call)

        #expect(status == 400)
        #expect(json?["error"]?["code"] == -32_602)
    }

    @Test(arguments: ["ping", "initialize", "logging/setLevel", "resources/subscribe", "tasks/get", "no/such"])
    func `a method that 2026-07-28 does not have gets 404 with a JSON-RPC error`(method: String) async throws {
        let (status, json) = try await TransportFixture().json(TransportFixture.stateless(method, ["uri": "a:b"]))

        #expect(status == 404)
        #expect(json?["error"]?["code"] == -32_601)
    }

    @Test func `invalid parameters and a missing resource get 400`() async throws {
        let handler = ScriptedHandler { _ throws(RPCError) in throw .resourceNotFound("a:b") }

        let (status, json) = try await TransportFixture(handler).json(
            TransportFixture.stateless("resources/read", ["uri": "a:b"])
        )

        #expect(status == 400)
        #expect(json?["error"]?["code"] == -32_602)
        #expect(json?["error"]?["data"]?["uri"] == "a:b")
    }

    @Test func `a session ID is ignored`() async throws {
        let call = TransportFixture.stateless("tools/list", headers: ["Mcp-Session-Id": ["whatever"]])

        let reply = try await TransportFixture().reply(to: call)

        #expect(reply?.status == 200)
        #expect(reply?.headers.contains { $0.name == "Mcp-Session-Id" } == false)
    }

    @Test func `an app's input request is passed on unchanged`() async throws {
        let asked: JSONObject = ["resultType": "input_required", "requestState": "opaque", "inputRequests": [:]]
        let handler = ScriptedHandler { _ throws(RPCError) in asked }

        let (_, json) = try await TransportFixture(handler).json(
            TransportFixture.stateless("tools/call", ["name": "ask"])
        )

        #expect(json?["result"]?["resultType"] == "input_required")
        #expect(json?["result"]?["requestState"] == "opaque")
        #expect(json?["result"]?["ttlMs"] == nil)
    }

    @Test func `a notification is accepted with 202 and an empty body`() async throws {
        let body: JSON = ["jsonrpc": "2.0", "method": "notifications/cancelled", "params": ["requestId": 1]]

        let reply = try await TransportFixture().reply(
            to: TransportFixture.call(body, headers: ["MCP-Protocol-Version": ["2026-07-28"]])
        )

        #expect(reply?.status == 202)
        #expect(reply?.body == [])
    }

    @Test func `a disconnect cancels the request`() async throws {
        let (ended, ends) = AsyncStream.makeStream(of: Bool.self)
        let disconnect = Mutex<(@Sendable () -> Void)?>(nil)
        let handler = ScriptedHandler { _ throws(RPCError) in
            disconnect.withLock { $0 }?()
            try? await Task.sleep(for: .seconds(60))
            ends.yield(Task.isCancelled)
            return [:]
        }
        let call = TransportFixture.stateless("tools/call", ["name": "slow"]) { callback in
            disconnect.withLock { $0 = callback }
        }

        await #expect(throws: CancellationError.self) { try await TransportFixture(handler).reply(to: call) }

        #expect(await ended.first { _ in true } == true)
    }
}
