import JSON
import Synchronization
import Testing

@testable import MCP

/// 2026-07-28: Streamable HTTP, and what every result has.
@Suite struct StatelessTests {
    @Test func `a result says that it is complete, how long it may be kept, and who gave it`() async throws {
        let (status, json) = try await DoorBench().json(DoorBench.modern("tools/list"))

        #expect(status == 200)
        let result = json?["result"]
        #expect(result?["resultType"] == "complete")
        #expect(result?["ttlMs"] == 0)
        #expect(result?["cacheScope"] == "private")
        #expect(result?["_meta"]?["io.modelcontextprotocol/serverInfo"]?["name"] == "scripted")
    }

    @Test func `the server is asked without what is the protocol's`() async throws {
        let bench = DoorBench()

        let call = DoorBench.modern(
            "tools/call",
            ["name": "tap", "arguments": [:]],
            meta: ["progressToken": "p", "traceparent": "00-1"]
        )
        _ = try await bench.json(call)

        let request = try #require(bench.server.requests.first)
        #expect(request.params["_meta"] == ["traceparent": "00-1"])
        #expect(request.capabilities["elicitation"] != nil)
        #expect(request.params["name"] == "tap")
    }

    @Test func `discovery names every revision and needs no server`() async throws {
        let (status, json) = try await DoorBench().json(DoorBench.modern("server/discover"))

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
    func `a header that is missing, doubled or contradicts the body is refused with 400`(
        headers: [String: [String]],
        code: Int
    ) async throws {
        let bench = DoorBench()

        let (status, json) = try await bench.json(DoorBench.modern("tools/call", ["name": "tap"], headers: headers))

        #expect(status == 400)
        #expect(json?["error"]?["code"]?.int == code)
        #expect(json?["id"] == 1)
        #expect(bench.server.requests.isEmpty)
    }

    @Test func `a name may be written in base64`() async throws {
        let call = DoorBench.modern("tools/call", ["name": "tap"], headers: ["Mcp-Name": ["=?base64?dGFw?="]])

        #expect(try await DoorBench().json(call).status == 200)
    }

    @Test func `a revision that nobody knows is answered with those that are spoken`() async throws {
        let call = DoorBench.modern(
            "tools/list",
            meta: ["io.modelcontextprotocol/protocolVersion": "2099-01-01"],
            headers: ["MCP-Protocol-Version": ["2099-01-01"]]
        )

        let (status, json) = try await DoorBench().json(call)

        #expect(status == 400)
        #expect(json?["error"]?["code"] == -32_022)
        #expect(json?["error"]?["data"]?["requested"] == "2099-01-01")
        #expect(json?["error"]?["data"]?["supported"]?.array?.contains("2026-07-28") == true)
    }

    @Test func `a request that only its header calls modern lacks its metadata`() async throws {
        let call = DoorBench.call(
            DoorBench.request("tools/list"),
            headers: ["MCP-Protocol-Version": ["2026-07-28"], "Mcp-Method": ["tools/list"]]
        )

        let (status, json) = try await DoorBench().json(call)

        #expect(status == 400)
        #expect(json?["error"]?["code"] == -32_602)
    }

    @Test func `metadata without capabilities is refused`() async throws {
        let call = DoorBench.modern("tools/list", meta: ["io.modelcontextprotocol/clientCapabilities": .null])

        let (status, json) = try await DoorBench().json(call)

        #expect(status == 400)
        #expect(json?["error"]?["code"] == -32_602)
    }

    @Test(arguments: ["ping", "initialize", "logging/setLevel", "resources/subscribe", "tasks/get", "no/such"])
    func `what the revision does not have is a 404 with a JSON-RPC error`(method: String) async throws {
        let (status, json) = try await DoorBench().json(DoorBench.modern(method, ["uri": "a:b"]))

        #expect(status == 404)
        #expect(json?["error"]?["code"] == -32_601)
    }

    @Test func `wrong parameters are a 400, and a missing resource is one of them`() async throws {
        let server = ScriptedServer { _ throws(RPCError) in throw .unknownResource("a:b") }

        let (status, json) = try await DoorBench(server).json(DoorBench.modern("resources/read", ["uri": "a:b"]))

        #expect(status == 400)
        #expect(json?["error"]?["code"] == -32_602)
        #expect(json?["error"]?["data"]?["uri"] == "a:b")
    }

    @Test func `a session id means nothing here`() async throws {
        let call = DoorBench.modern("tools/list", headers: ["Mcp-Session-Id": ["whatever"]])

        let reply = try await DoorBench().reply(to: call)

        #expect(reply?.status == 200)
        #expect(reply?.headers.contains { $0.name == "Mcp-Session-Id" } == false)
    }

    @Test func `an app's question goes through as it is`() async throws {
        let asked: JSONObject = ["resultType": "input_required", "requestState": "opaque", "inputRequests": [:]]
        let server = ScriptedServer { _ throws(RPCError) in asked }

        let (_, json) = try await DoorBench(server).json(DoorBench.modern("tools/call", ["name": "ask"]))

        #expect(json?["result"]?["resultType"] == "input_required")
        #expect(json?["result"]?["requestState"] == "opaque")
        #expect(json?["result"]?["ttlMs"] == nil)
    }

    @Test func `a notification is taken with 202 and an empty body`() async throws {
        let body: JSON = ["jsonrpc": "2.0", "method": "notifications/cancelled", "params": ["requestId": 1]]

        let reply = try await DoorBench().reply(
            to: DoorBench.call(body, headers: ["MCP-Protocol-Version": ["2026-07-28"]])
        )

        #expect(reply?.status == 202)
        #expect(reply?.body == [])
    }

    @Test func `who goes away has called the request off`() async throws {
        let (ended, ends) = AsyncStream.makeStream(of: Bool.self)
        let farewell = Mutex<(@Sendable () -> Void)?>(nil)
        let server = ScriptedServer { _ throws(RPCError) in
            farewell.withLock { $0 }?()
            try? await Task.sleep(for: .seconds(60))
            ends.yield(Task.isCancelled)
            return [:]
        }
        let call = DoorBench.modern("tools/call", ["name": "slow"]) { leave in farewell.withLock { $0 = leave } }

        await #expect(throws: CancellationError.self) { try await DoorBench(server).reply(to: call) }

        #expect(await ended.first { _ in true } == true)
    }
}
