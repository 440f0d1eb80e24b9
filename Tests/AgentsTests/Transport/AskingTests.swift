import AccessControl
import Model
import Samples
import Synchronization
import TestSupport
import Testing

@testable import Agents
@testable import Apps

/// Requests to a client on the stream of its own request, in the session protocols.
@Suite struct AskingTests {
    private static let capable: JSON = ["elicitation": [:], "roots": ["listChanged": true]]

    /// A handler that asks the client for a name and returns the response.
    private static let asking = ScriptedHandler { request throws(RPCError) in
        guard let clientRequester = request.clientRequester else { return ["content": [], "isError": true] }
        let answer = await clientRequester.send(
            SuspendedRequest("elicitation/create", ["message": "Who are you?"])
        )
        return ["content": [["type": "text", "text": .string((try? answer.get())?["action"]?.string ?? "\(answer)")]]]
    }

    private static func call(_ session: String, accept: String = TransportFixture.both) -> MCPHTTPRequest {
        TransportFixture.call(
            TransportFixture.request("tools/call", ["name": "x"], id: 9),
            headers: ["Mcp-Session-Id": [session], "Accept": [accept]]
        )
    }

    private static func answer(_ id: JSON, _ session: String, action: JSON = "accept") -> MCPHTTPRequest {
        TransportFixture.call(
            ["jsonrpc": "2.0", "id": id, "result": ["action": action]],
            headers: ["Mcp-Session-Id": [session]]
        )
    }

    private static func serverRequest(_ recorder: ResponseRecorder) async throws -> JSON {
        try await eventually("the client is asked") { recorder.messages.first { $0["method"] == "elicitation/create" } }
    }

    @Test func `a client gets an app's request on the stream of its own request, and its response reaches the app`()
        async throws
    {
        let fixture = TransportFixture(Self.asking)
        let session = try await fixture.handshake("2025-06-18", Self.capable)

        try await fixture.serving(Self.call(session)) { recorder in
            let serverRequest = try await Self.serverRequest(recorder)
            let taken = try await fixture.reply(to: Self.answer(serverRequest["id"] ?? .null, session))
            try await eventually("it ends") { recorder.hasEnded }

            #expect(serverRequest["params"] == ["message": "Who are you?"])
            #expect(taken?.status == 202)
            #expect(recorder.messages.last?["id"] == 9)
            #expect(recorder.messages.last?["result"]?["content"]?.array?.first?["text"] == "accept")
        }
        let asked = try #require(Self.asking.requests.last)
        #expect(asked.capabilities == ["roots": [:], "elicitation": [:]])
        #expect(asked.clientRequester?.protocolVersion == .v2025_06_18)
    }

    @Test func `a client's capabilities survive a restart of the broker`() async throws {
        let key = SessionIDSigner()
        let session = try await TransportFixture(key: key).handshake("2025-11-25", Self.capable)
        let fixture = TransportFixture(Self.asking, key: key)

        try await fixture.serving(Self.call(session)) { recorder in
            let serverRequest = try await Self.serverRequest(recorder)
            _ = try await fixture.reply(to: Self.answer(serverRequest["id"] ?? .null, session))
            try await eventually("it ends") { recorder.hasEnded }
        }
    }

    @Test func `only the session and holder that got a request can respond`() async throws {
        let fixture = TransportFixture(Self.asking)
        let (mine, other) = (
            try await fixture.handshake("2025-11-25", Self.capable),
            try await fixture.handshake("2025-11-25", Self.capable)
        )
        let thief = Principal.holder(of: "thief", [.endpointCall])

        try await fixture.serving(Self.call(mine)) { recorder in
            let id = try await Self.serverRequest(recorder)["id"] ?? .null
            #expect(try await fixture.reply(to: Self.answer(id, other, action: "decline"))?.status == 202)
            #expect(try await fixture.reply(to: Self.answer(id, mine, action: "cancel"), of: thief)?.status == 202)
            #expect(try await fixture.reply(to: Self.answer("guessed", mine, action: "cancel"))?.status == 202)
            _ = try await fixture.reply(to: Self.answer(id, mine))
            try await eventually("it ends") { recorder.hasEnded }

            #expect(recorder.messages.last?["result"]?["content"]?.array?.first?["text"] == "accept")
        }
    }

    @Test func `a client without capabilities or without a stream has no client requester`()
        async throws
    {
        let fixture = TransportFixture(Self.asking)
        let (incapable, capable) = (
            try await fixture.handshake(), try await fixture.handshake("2025-11-25", Self.capable)
        )

        let first = try await fixture.json(Self.call(incapable))
        let second = try await fixture.json(Self.call(capable, accept: "application/json"))
        let modern = try await fixture.json(TransportFixture.stateless("tools/call", ["name": "x"]))

        for answer in [first, second, modern] { #expect(answer.1?["result"]?["isError"] == true) }
    }

    @Test func `an app's request fails at once when the client disconnects`() async throws {
        let outcome = Mutex<Result<JSON, RPCError>?>(nil)
        let handler = ScriptedHandler { request throws(RPCError) in
            let answer = await request.clientRequester?.send(SuspendedRequest("elicitation/create", [:]))
            outcome.withLock { $0 = answer }
            return ["content": []]
        }
        let fixture = TransportFixture(handler)
        let session = try await fixture.handshake("2025-11-25", Self.capable)
        let disconnect = Mutex<(@Sendable () -> Void)?>(nil)
        let call = TransportFixture.call(
            TransportFixture.request("tools/call", ["name": "x"]),
            headers: ["Mcp-Session-Id": [session]]
        ) { onDisconnect in disconnect.withLock { $0 = onDisconnect } }

        try await fixture.serving(call) { recorder in
            let id = try await Self.serverRequest(recorder)["id"] ?? .null
            disconnect.withLock { $0 }?()
            try await eventually("the app has an error") { outcome.withLock { $0 } != nil }
            // Too late: the request is gone.
            #expect(try await fixture.reply(to: Self.answer(id, session))?.status == 202)
        }

        #expect(throws: RPCError.self) { try outcome.withLock { $0 }?.get() }
    }

    @Test func `an unbound request uses any stream of the client and survives the end of that stream`() async throws {
        let (released, release) = AsyncStream.makeStream(of: Void.self)
        let handler = ScriptedHandler { request throws(RPCError) in
            if request.params["name"] == "first" {
                for await _ in released { break }
                return ["content": []]
            }
            let answer = await request.clientRequester?.send(SuspendedRequest("roots/list", isBound: false))
            return ["content": [], "isError": .bool((try? answer?.get()) == nil)]
        }
        let fixture = TransportFixture(handler)
        let session = try await fixture.handshake("2025-11-25", Self.capable)
        let headers = ["Mcp-Session-Id": [session]]
        let first = TransportFixture.call(
            TransportFixture.request("tools/call", ["name": "first"], id: 1),
            headers: headers
        )
        let other = TransportFixture.call(
            TransportFixture.request("tools/call", ["name": "other"], id: 2),
            headers: headers
        )

        try await fixture.serving(first) { firstRecorder in
            try await eventually("it runs") { !handler.requests.isEmpty }
            try await fixture.serving(other) { asking in
                let serverRequest: JSON = try await eventually("the client is asked") {
                    (firstRecorder.messages + asking.messages).first { $0["method"] == "roots/list" }
                }
                release.yield()
                try await eventually("the first request ends") { firstRecorder.hasEnded || firstRecorder.reply != nil }
                _ = try await fixture.reply(
                    to: TransportFixture.call(
                        ["jsonrpc": "2.0", "id": serverRequest["id"] ?? .null, "result": ["roots": []]],
                        headers: headers
                    )
                )
                try await eventually("it ends") { asking.hasEnded || asking.reply != nil }
                let body = asking.reply.flatMap { try? JSON(parsing: $0.body) } ?? asking.messages.last

                #expect(body?["result"]?["isError"] == false)
            }
        }
    }

    @Test func `a client gets a cancellation when the app cancels its request`() async throws {
        let handler = ScriptedHandler { request throws(RPCError) in
            _ = try? await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { _ = await request.clientRequester?.send(SuspendedRequest("elicitation/create", [:])) }
                group.addTask { try await Task.sleep(for: .milliseconds(50)) }
                try await group.next()
                group.cancelAll()
            }
            return ["content": []]
        }
        let fixture = TransportFixture(handler)
        let session = try await fixture.handshake("2025-11-25", Self.capable)

        try await fixture.serving(Self.call(session)) { recorder in
            try await eventually("it ends") { recorder.hasEnded }
            let cancelled = recorder.messages.first { $0["method"] == "notifications/cancelled" }

            #expect(cancelled?["params"]?["requestId"] == recorder.messages.first?["id"])
        }
    }

    @Test func `log messages below the level of the session are dropped`() async throws {
        let handler = ScriptedHandler { request throws(RPCError) in
            guard request.method == "tools/call" else { throw .methodNotFound(request.method) }
            for level in ["debug", "error"] {
                request.notify?(RPCNotification(method: "notifications/message", params: ["level": .string(level)]))
            }
            return ["content": [], "level": request.logLevel.map { .string($0) } ?? .null]
        }
        let fixture = TransportFixture(handler)
        let session = try await fixture.handshake()
        let set = TransportFixture.call(
            TransportFixture.request("logging/setLevel", ["level": "warning"]),
            headers: ["Mcp-Session-Id": [session]]
        )

        try await fixture.serving(Self.call(session)) { recorder in
            try await eventually("it ends") { recorder.hasEnded }
            #expect(recorder.messages.count == 3)
            #expect(recorder.messages.last?["result"]?["level"] == "debug")
        }
        #expect(try await fixture.json(set).1?["result"] == [:])
        try await fixture.serving(Self.call(session)) { recorder in
            try await eventually("it ends") { recorder.hasEnded }
            #expect(recorder.messages.compactMap { $0["params"]?["level"] } == ["error"])
            #expect(recorder.messages.last?["result"]?["level"] == "warning")
            // An app's log level belongs to one session, not to all clients.
            #expect(handler.requests.map { $0.clientRequester?.key } == [nil, session, session])
            #expect(handler.requests.last?.capabilities == [:])
        }
    }
}
