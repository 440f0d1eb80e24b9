import AccessControl
import Glibc
import Model
import Samples
import Synchronization
import TestSupport
import Testing

@testable import Apps

/// Apps that send requests to their clients.
@Suite struct AppAskingTests {
    private static let question: JSON = [
        "jsonrpc": "2.0", "id": 71, "method": "elicitation/create",
        "params": ["message": "Who?", "_meta": ["progressToken": 71]],
    ]

    /// A server with a new session for each `initialize`. Its tool sends requests and returns the responses that it
    /// got.
    private static func sessionServer(_ questions: [JSON] = [question]) -> ScriptedApp {
        let count = Mutex(0)
        return ScriptedApp { request in
            switch request.method {
            case "initialize":
                let result: JSON = [
                    "protocolVersion": request.body["params"]?["protocolVersion"] ?? "", "capabilities": ["tools": [:]],
                    "serverInfo": ["name": "curious", "version": "1"],
                ]
                let number = count.withLock { count in
                    count += 1
                    return count
                }
                let answer: JSON = ["jsonrpc": "2.0", "id": request.body["id"] ?? .null, "result": result]
                return .http(200, ["Mcp-Session-Id: session-\(number)"], answer.text)
            case "tools/call":
                return .asking(questions) {
                    ["content": .array($0.map { ["type": "text", "text": .string($0.text)] })]
                }
            default: return request.head.hasPrefix("GET ") ? .http(405, [], "") : .http(202, [], "")
            }
        }
    }

    private static func clientRequester(
        _ key: String = "one",
        _ capabilities: ClientCapabilities = [.elicitationForm],
        _ send: @escaping ClientRequester.Send = { _ in .success(["action": "accept"]) }
    ) -> ClientRequester {
        ClientRequester(
            key: key,
            protocolVersion: .v2025_06_18,
            capabilities: capabilities,
            isAskedOnStreams: true,
            send: send
        )
    }

    private static func request(_ clientRequester: ClientRequester?) -> MCPRequest {
        MCPRequest(
            "tools/call",
            ["name": "ask"],
            capabilities: clientRequester?.capabilities.json ?? [:],
            clientRequester: clientRequester
        )
    }

    /// The responses that the app received, as its tool returned them.
    private static func responses(_ result: JSONObject) throws -> [JSON] {
        try (result["content"]?.array ?? []).map { try JSON(parsing: $0["text"]?.string ?? "") }
    }

    @Test func `an app's request goes to the client of the call, in that client's own session`() async throws {
        let app = Self.sessionServer()
        let fixture = AppProxyFixture(app)
        let shop = try #require(await fixture.appear(kind: .mcp))
        let handler = AppRequestHandler(shop.id, proxy: fixture.proxy)
        let received = Mutex<[JSON]>([])
        try await fixture.run {
            let requester = Self.clientRequester { request in
                received.withLock {
                    $0.append([
                        "method": .string(request.method), "params": request.params.map { .object($0) } ?? .null,
                    ])
                }
                return .success(["action": "decline"])
            }
            let result = try await handler.answer(Self.request(requester), of: fixture.owner)
            _ = try await handler.answer(Self.request(requester), of: fixture.owner)
            _ = try await handler.answer(Self.request(Self.clientRequester("two")), of: fixture.owner)

            #expect(try Self.responses(result) == [["jsonrpc": "2.0", "id": 71, "result": ["action": "decline"]]])
        }
        #expect(received.withLock { $0.first } == ["method": "elicitation/create", "params": ["message": "Who?"]])
        // Session 1 is the shared session.
        #expect(app.calls.map { $0.header("Mcp-Session-Id") } == ["session-2", "session-2", "session-3"])
        let handshakes = app.requests.filter { $0.method == "initialize" }.map { $0.body["params"] }
        #expect(handshakes.map { $0?["capabilities"] } == [[:], ["elicitation": [:]], ["elicitation": [:]]])
        #expect(handshakes.map { $0?["protocolVersion"] } == ["2025-11-25", "2025-06-18", "2025-06-18"])
        // Each response was sent in the session of its request.
        let answers = app.requests.filter { $0.body["result"] != nil }.map { $0.header("Mcp-Session-Id") }
        #expect(answers == ["session-2", "session-2", "session-3"])
        #expect(fixture.authorizer.events.count == 3)
    }

    @Test(arguments: [nil, clientRequester("roots", [.roots])])
    func `an app gets an error at once if the client does not support its request`(clientRequester: ClientRequester?)
        async throws
    {
        let app = Self.sessionServer()
        let fixture = AppProxyFixture(app)
        let shop = try #require(await fixture.appear(kind: .mcp))
        try await fixture.run {
            let result = try await AppRequestHandler(shop.id, proxy: fixture.proxy).answer(
                Self.request(clientRequester),
                of: fixture.owner
            )

            #expect(try Self.responses(result).first?["error"]?["code"] == -32_601)
        }
    }

    @Test func `a slow client does not count as a silent app, and has a timeout of its own`() async throws {
        let app = Self.sessionServer()
        let fixture = AppProxyFixture(app) {
            $0.response.idle = .milliseconds(200)
            $0.response.total = .milliseconds(400)
            $0.clientAnswer = .seconds(1)
        }
        let shop = try #require(await fixture.appear(kind: .mcp))
        let handler = AppRequestHandler(shop.id, proxy: fixture.proxy)
        try await fixture.run {
            let thinking = Self.clientRequester { _ in
                try? await Task.sleep(for: .milliseconds(600))
                return .success(["action": "accept"])
            }
            let absent = Self.clientRequester { _ in
                try? await Task.sleep(for: .seconds(60))
                return .failure(.internalError("absent"))
            }

            let result = try await handler.answer(Self.request(thinking), of: fixture.owner)
            let late = try await handler.answer(Self.request(absent), of: fixture.owner)

            #expect(try Self.responses(result).first?["result"] == ["action": "accept"])
            #expect(
                try Self.responses(late).first?["error"]?["message"]?.string?.contains("not answer within 1 s") == true
            )
        }
    }

    @Test func `a request on the GET stream goes to the session's client`()
        async throws
    {
        let isRunning = Mutex(false)
        let answer = Mutex<JSON?>(nil)
        let roots: JSON = ["jsonrpc": "2.0", "id": "r", "method": "roots/list"]
        let app = ScriptedApp { request in
            if request.head.hasPrefix("GET ") {
                return .later { isRunning.withLock { $0 } ? roots : nil }
            }
            switch request.method {
            case "initialize":
                let result: JSON = [
                    "protocolVersion": "2025-11-25", "capabilities": ["tools": [:]], "serverInfo": ["name": "x"],
                ]
                let answer: JSON = ["jsonrpc": "2.0", "id": request.body["id"] ?? .null, "result": result]
                return .http(200, ["Mcp-Session-Id: s"], answer.text)
            case "tools/call":
                isRunning.withLock { $0 = true }
                let end = ContinuousClock.now + .seconds(5)
                while answer.withLock({ $0 == nil }), ContinuousClock.now < end { usleep(5_000) }
                return .result(["content": [["type": "text", "text": .string(answer.withLock { $0?.text } ?? "none")]]])
            default:
                if request.body["id"] == "r" { answer.withLock { $0 = request.body } }
                return .http(202, [], "")
            }
        }
        // The client takes longer than the app's idle timeout.
        let fixture = AppProxyFixture(app) { $0.response.idle = .milliseconds(300) }
        let shop = try #require(await fixture.appear(kind: .mcp))
        try await fixture.run {
            let requester = Self.clientRequester("one", [.roots]) { request in
                #expect(request.method == "roots/list" && !request.isBound)
                try? await Task.sleep(for: .milliseconds(700))
                return .success(["roots": []])
            }
            let result = try await AppRequestHandler(shop.id, proxy: fixture.proxy).answer(
                Self.request(requester),
                of: fixture.owner
            )

            #expect(try Self.responses(result) == [["jsonrpc": "2.0", "id": "r", "result": ["roots": []]]])
        }
    }

    @Test func `a log level applies to the client's own session`() async throws {
        let app = Self.sessionServer([])
        let fixture = AppProxyFixture(app)
        let shop = try #require(await fixture.appear(kind: .mcp))
        let handler = AppRequestHandler(shop.id, proxy: fixture.proxy)
        let level = MCPRequest("logging/setLevel", ["level": "error"], clientRequester: Self.clientRequester())
        try await fixture.run {
            // The app answers 202, which is no result; the test checks only the session of the request.
            _ = try? await handler.answer(level, of: fixture.owner)
            _ = try await handler.answer(Self.request(nil), of: fixture.owner)
        }
        let set = app.requests.filter { $0.method == "logging/setLevel" }
        #expect(set.map { $0.header("Mcp-Session-Id") } == ["session-2"])
        #expect(app.calls.map { $0.header("Mcp-Session-Id") } == ["session-1"])
    }

    @Test func `an evicted session is deleted at the app`() async throws {
        let app = Self.sessionServer([])
        let fixture = AppProxyFixture(app)
        let shop = try #require(await fixture.appear(kind: .mcp))
        let handler = AppRequestHandler(shop.id, proxy: fixture.proxy)
        try await fixture.run {
            for number in 0...ClientSessionPool.limitPerHolder {
                _ = try await handler.answer(Self.request(Self.clientRequester("\(number)")), of: fixture.owner)
            }

            try await eventually("the session is deleted") {
                app.requests.contains {
                    $0.head.hasPrefix("DELETE /mcp ") && $0.header("Mcp-Session-Id") == "session-2"
                }
            }
        }
        #expect(app.requests.count { $0.head.hasPrefix("DELETE ") } == 1)
    }

    @Test func `a client that disconnects cancels its call at the app, also in stateless mode`()
        async throws
    {
        let app = ScriptedApp { request in
            if request.method == "tools/call" { return .silence }
            return request.method == "initialize"
                ? .result(["protocolVersion": "2025-11-25", "capabilities": [:], "serverInfo": ["name": "x"]])
                : .http(202, [], "")
        }
        let fixture = AppProxyFixture(app)
        let shop = try #require(await fixture.appear(kind: .mcp))
        let request = MCPRequest("tools/call", ["name": "x"], capabilities: ["roots": [:]])
        try await fixture.run {
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask {
                    _ = try? await AppRequestHandler(shop.id, proxy: fixture.proxy).answer(request, of: fixture.owner)
                }
                try await eventually("the call has arrived") { app.calls.count == 1 }
                group.cancelAll()
            }
            try await eventually("the call is cancelled") {
                app.requests.contains { $0.method == "notifications/cancelled" }
            }
        }
    }

    @Test func `an app without sessions gets one handshake, regardless of client capabilities`() async throws {
        let app = ScriptedApp.appReveal()
        let fixture = AppProxyFixture(app)
        let shop = try #require(await fixture.appear())
        try await fixture.run {
            _ = try await AppRequestHandler(shop.id, proxy: fixture.proxy).answer(
                Self.request(Self.clientRequester()),
                of: fixture.owner
            )
        }
        #expect(app.requests.filter { $0.method == "initialize" }.count == 1)
        #expect(app.calls.count == 1)
    }

    @Test func `a stateless client is asked by a result, and the app waits for the answer`()
        async throws
    {
        let second: JSON = ["jsonrpc": "2.0", "id": 72, "method": "elicitation/create", "params": ["message": "And?"]]
        let app = Self.sessionServer([Self.question, second])
        let fixture = AppProxyFixture(app)
        let shop = try #require(await fixture.appear(kind: .mcp))
        let handler = AppRequestHandler(shop.id, proxy: fixture.proxy)
        @Sendable func ask(_ more: JSONObject = [:], of principal: Principal? = nil) async throws -> JSONObject {
            var params: JSONObject = ["name": "ask"]
            for member in more.members { params[member.name] = member.value }
            let request = MCPRequest(
                "tools/call",
                params,
                capabilities: ["elicitation": [:]]
            )
            return try await handler.answer(request, of: principal ?? fixture.owner)
        }
        try await fixture.run {
            let thief = Principal.holder(of: "thief", [.endpointCall, .secretUse])

            let first = try await ask()
            let state = first["requestState"] ?? .null
            await #expect(throws: RPCError.self) {
                try await ask(["requestState": state, "inputResponses": ["q1": [:]]], of: thief)
            }
            let then = try await ask(["requestState": state, "inputResponses": ["q1": ["action": "accept"]]])
            let last = try await ask([
                "requestState": then["requestState"] ?? .null, "inputResponses": ["q2": ["action": "cancel"]],
            ])

            #expect(first["resultType"] == "input_required")
            #expect(first["inputRequests"]?["q1"] == ["method": "elicitation/create", "params": ["message": "Who?"]])
            #expect(then["inputRequests"]?.object?.members.map(\.name) == ["q2"])
            #expect(try Self.responses(last).map { $0["result"]?["action"] } == ["accept", "cancel"])
            await #expect(throws: RPCError.self) { try await ask(["requestState": state]) }
        }
        #expect(app.calls.count == 1)
        #expect(fixture.authorizer.events.count == 1)
    }

    @Test
    func `a result of a stateless app that requests input is asked on the stream of a session client`()
        async throws
    {
        let app = ScriptedApp { request in
            switch request.method {
            case "server/discover":
                .result(["supportedVersions": ["2026-07-28"], "capabilities": ["tools": [:]]])
            case "tools/call" where request.body["params"]?["inputResponses"] == nil:
                .result([
                    "resultType": "input_required", "requestState": "s1",
                    "inputRequests": ["a": ["method": "elicitation/create", "params": ["message": "Who?"]]],
                ])
            case "tools/call":
                .result([
                    "resultType": "complete",
                    "content": [["type": "text", "text": .string((request.body["params"] ?? .null).text)]],
                ])
            default: .http(400, [], #"{"jsonrpc":"2.0","id":1,"error":{"code":-32020,"message":"mismatch"}}"#)
            }
        }
        let fixture = AppProxyFixture(app)
        let shop = try #require(await fixture.appear(kind: .mcp))
        let handler = AppRequestHandler(shop.id, proxy: fixture.proxy)
        try await fixture.run {
            let result = try await handler.answer(Self.request(Self.clientRequester()), of: fixture.owner)
            _ = try await handler.answer(Self.request(Self.clientRequester()), of: fixture.owner)

            let params = try #require(Self.responses(result).first)
            #expect(params["inputResponses"] == ["a": ["action": "accept"]])
            #expect(params["requestState"] == "s1")
            #expect(params["name"] == "ask")
        }
        let meta = app.calls.first?.body["params"]?["_meta"]
        #expect(meta?["io.modelcontextprotocol/clientCapabilities"] == ["elicitation": [:]])
        // Tried only once, because the app gave no session.
        #expect(app.requests.filter { $0.method == "initialize" }.count == 1)
        #expect(fixture.authorizer.events.count == 2)
    }
}
