import Model
import Testing

@testable import Agents
@testable import Apps

@Suite struct RequestParserTests {
    private static let signer = SessionIDSigner()

    private static func parse(_ call: MCPHTTPRequest) async throws(HTTPRejection) -> MCPRequestContent {
        try await RequestParser(signer: signer, endedSessions: EndedSessions()).parse(call, holder: "uid:7")
    }

    /// Returns the request that the parser finds.
    private static func request(in call: MCPHTTPRequest) async throws -> ParsedRequest {
        let content = try await parse(call)
        guard case .request(let parsed) = content else { throw Unexpected(content: content) }
        return parsed
    }

    /// Returns the status and the JSON-RPC message of the response that rejects a request.
    private static func rejection(of call: MCPHTTPRequest) async throws -> (status: Int, JSON?) {
        let content: MCPRequestContent
        do throws(HTTPRejection) { content = try await parse(call) } catch {
            return (error.response.status, try? JSON(parsing: error.response.body))
        }
        throw Unexpected(content: content)
    }

    private struct Unexpected: Error { let content: MCPRequestContent }

    @Test func `a request of 2026-07-28 has no session and carries its client's capabilities`() async throws {
        let call = TransportFixture.stateless(
            "tools/call",
            ["name": "tap"],
            id: "a",
            meta: ["progressToken": 7, "com.example/x": 1],
            headers: ["Mcp-Session-Id": ["whatever"]]
        )

        let parsed = try await Self.request(in: call)

        #expect(parsed.id == RPCID("a") && parsed.mode == .stateless && parsed.session == nil)
        #expect(parsed.meta.progressToken == RPCID(7))
        #expect(parsed.request.method == "tools/call")
        #expect(parsed.request.params == ["name": "tap", "_meta": ["com.example/x": 1]])
        #expect(parsed.request.capabilities == ["elicitation": [:]])
    }

    @Test func `trace contexts are read from the headers and from the metadata, and malformed ones are dropped`()
        async throws
    {
        let parents = ["1", "2"].map { String(repeating: $0, count: 32) }.map { "00-\($0)-b7ad6b7169203331-01" }
        func trace(header: String, meta: JSON) async throws -> (CallTrace, JSON?) {
            let call = TransportFixture.stateless(
                "tools/call",
                ["name": "tap"],
                meta: ["traceparent": meta, "tracestate": "a=1"],
                headers: ["traceparent": [header], "tracestate": ["b=2"]]
            )
            let request = try await Self.request(in: call).request
            return (request.trace, request.params["_meta"])
        }

        let (valid, rest) = try await trace(header: parents[0], meta: .string(parents[1]))
        #expect(valid.header == TraceContext(parent: parents[0], state: "b=2"))
        #expect(valid.meta == TraceContext(parent: parents[1], state: "a=1") && rest == nil)
        let (dropped, left) = try await trace(header: "00-1", meta: 7)
        #expect(dropped == CallTrace() && left == nil)
    }

    @Test func `a request of a session has the version and the capabilities of its handshake`() async throws {
        let id = Self.signer.makeID(for: .v2025_06_18, [.roots])
        let body = TransportFixture.request("tools/list", id: 2)

        let parsed = try await Self.request(in: TransportFixture.call(body, headers: ["Mcp-Session-Id": [id]]))

        #expect(parsed.mode == .session(.v2025_06_18) && parsed.capabilities == [.roots])
        #expect(parsed.session == SessionStore.Session(id: id, holder: "uid:7"))
        #expect(parsed.request.capabilities == [:])
    }

    @Test func `a request without a session and a version is of 2025-03-26`() async throws {
        let parsed = try await Self.request(in: TransportFixture.call(TransportFixture.request("tools/list")))

        #expect(parsed.mode == .session(.v2025_03_26) && parsed.session == nil)
    }

    @Test func `a batch has its requests in order, and the messages to receive before them`() async throws {
        let id = Self.signer.makeID(for: .v2025_03_26)
        let batch: JSON = [
            TransportFixture.request("tools/list", id: 1), ["jsonrpc": "2.0", "id": 2],
            ["jsonrpc": "2.0", "method": "notifications/cancelled", "params": ["requestId": 9]],
            ["jsonrpc": "2.0", "method": "notifications/initialized"], ["jsonrpc": "2.0", "id": "b", "result": [:]],
            TransportFixture.request("ping", id: 3),
        ]

        let content = try await Self.parse(TransportFixture.call(batch, headers: ["Mcp-Session-Id": [id]]))

        guard case .messages(let messages, let session, let requests) = content else {
            throw Unexpected(content: content)
        }
        let ids = requests.map { request -> RPCID? in
            switch request {
            case .success(let parsed): parsed.id
            case .failure(let rejected): rejected.id
            }
        }
        #expect(ids == [RPCID(1), RPCID(2), RPCID(3)])
        #expect((try? requests[1].get()) == nil)
        #expect(session?.id == id)
        guard messages.count == 3, case .notification(let cancelled) = messages[0],
            case .response(let answered, let outcome) = messages[2]
        else { throw Unexpected(content: content) }
        #expect(cancelled.params?["requestId"] == 9 && answered == RPCID("b") && outcome == .success([:]))
    }

    @Test func `a message without a session has no effect`() async throws {
        let body: JSON = ["jsonrpc": "2.0", "method": "notifications/cancelled", "params": ["requestId": 9]]

        let content = try await Self.parse(TransportFixture.call(body))

        guard case .messages(_, nil, let requests) = content else { throw Unexpected(content: content) }
        #expect(requests.isEmpty)
    }

    @Test func `a GET is the stream of its session, and a DELETE ends the session`() async throws {
        let headers = ["Mcp-Session-Id": [Self.signer.makeID(for: .v2025_11_25)]]

        let stream = try await Self.parse(TransportFixture.call(nil, .get, headers: headers))
        let end = try await Self.parse(TransportFixture.call(nil, .delete, headers: headers))

        guard case .stream(let first?) = stream, case .end(let second?) = end else { throw Unexpected(content: stream) }
        #expect(first == second)
    }

    @Test(arguments: [#""\ud800""#, #""a\udc00b""#, #""\ud800\u0041""#])
    func `an ID that would change in the response is rejected`(id: String) async throws {
        let body = #"{"jsonrpc":"2.0","id":\#(id),"method":"tools/list"}"#

        let (status, json) = try await Self.rejection(of: TransportFixture.call(nil, bytes: Array(body.utf8)))

        #expect(status == 400)
        #expect(json?["error"]?["code"] == -32_600)
        #expect(json?["id"] == nil)
    }

    @Test func `a session ID that this broker did not sign gets 404`() async throws {
        let own = Self.signer.makeID(for: .v2025_11_25)

        for id in [
            SessionIDSigner().makeID(for: .v2025_11_25), "x", "", String(own.dropLast()), own + "A",
            own.replacing("2025-11-25", with: "2025-06-18"),
        ] {
            let call = TransportFixture.call(TransportFixture.request("tools/list"), headers: ["Mcp-Session-Id": [id]])
            let (status, json) = try await Self.rejection(of: call)

            #expect(status == 404, "\(id)")
            #expect(json?["error"]?["code"] == -32_600)
        }
    }

    @Test func `a protocol version without batches rejects them`() async throws {
        let batch: JSON = [TransportFixture.request("tools/list")]
        let call = TransportFixture.call(batch, headers: ["MCP-Protocol-Version": ["2025-06-18"]])

        #expect(try await Self.rejection(of: call).status == 400)
    }

    @Test(arguments: [1, RequestParser.batchLimit, RequestParser.batchLimit + 1])
    func `a batch has at most 64 messages`(count: Int) async throws {
        let batch = JSON.array(Array(repeating: TransportFixture.request("ping"), count: count))

        if count <= 64 {
            _ = try await Self.parse(TransportFixture.call(batch))
        } else {
            #expect(try await Self.rejection(of: TransportFixture.call(batch)).status == 400)
        }
    }

    @Test func `a request with null for its params has none`() async throws {
        let body: JSON = ["jsonrpc": "2.0", "id": 3, "method": "tools/list", "params": .null]

        let parsed = try await Self.request(in: TransportFixture.call(body))

        #expect(parsed.id == RPCID(3) && parsed.request.params == [:])
    }

    @Test func `a client that accepts neither JSON nor events gets 406`() async throws {
        let call = TransportFixture.call(TransportFixture.request("tools/list"), headers: ["Accept": ["text/html"]])

        let (status, json) = try await Self.rejection(of: call)

        #expect(status == 406)
        #expect(json?["error"]?["message"] == "send the header Accept: application/json, text/event-stream")
    }

    @Test(arguments: [["application/json"], []])
    func `a stream without an Accept header for events gets 406 with the header to send`(accept: [String])
        async throws
    {
        for call in [
            TransportFixture.call(nil, .get, headers: ["Accept": accept]),
            TransportFixture.stateless("subscriptions/listen", headers: ["Accept": accept]),
        ] {
            let (status, json) = try await Self.rejection(of: call)

            #expect(status == 406)
            #expect(json?["error"]?["message"] == "send the header Accept: text/event-stream")
        }
    }
}
