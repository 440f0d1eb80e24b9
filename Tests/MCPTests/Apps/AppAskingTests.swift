import Glibc
import JSON
import Model
import TestSupport
import Synchronization
import Testing

@testable import MCP

/// Apps that ask back.
@Suite struct AppAskingTests {
    private static let question: JSON = [
        "jsonrpc": "2.0", "id": 71, "method": "elicitation/create",
        "params": ["message": "Who?", "_meta": ["progressToken": 71]],
    ]

    /// A server with a session for each `initialize`, whose tool asks, and says what it was answered.
    private static func sessionful(_ questions: [JSON] = [question]) -> ScriptedApp {
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

    private static func wayBack(
        _ key: String = "one",
        _ faculties: ClientCapabilities = [.forms],
        _ ask: @escaping ClientRequester.Question = { _, _, _ in .success(["action": "accept"]) }
    ) -> ClientRequester {
        ClientRequester(
            key: key,
            revision: .june2025,
            faculties: faculties,
            isOneClient: true,
            takesResults: true,
            ask: ask
        )
    }

    private static func request(_ wayBack: ClientRequester?) -> MCPRequest {
        MCPRequest(
            "tools/call",
            ["name": "ask"],
            capabilities: wayBack?.faculties.capabilities ?? [:],
            wayBack: wayBack
        )
    }

    /// What the app was answered, as it says.
    private static func told(_ result: JSONObject) throws -> [JSON] {
        try (result["content"]?.array ?? []).map { try JSON(parsing: $0["text"]?.string ?? "") }
    }

    @Test func `an app asks the caller whose request it works on, in a session of that caller's alone`() async throws {
        let app = Self.sessionful()
        let rig = DeskRig(app)
        let shop = try #require(await rig.appear(kind: .mcp))
        let server = AppMCPServer(shop.id, desk: rig.desk)
        let heard = Mutex<[JSON]>([])
        try await rig.run {
            let asked = Self.wayBack { method, params, _ in
                heard.withLock {
                    $0.append(["method": .string(method), "params": params.map { .object($0) } ?? .null])
                }
                return .success(["action": "decline"])
            }
            let result = try await server.answer(Self.request(asked), of: rig.owner)
            _ = try await server.answer(Self.request(asked), of: rig.owner)
            _ = try await server.answer(Self.request(Self.wayBack("two")), of: rig.owner)

            #expect(try Self.told(result) == [["jsonrpc": "2.0", "id": 71, "result": ["action": "decline"]]])
        }
        #expect(heard.withLock { $0.first } == ["method": "elicitation/create", "params": ["message": "Who?"]])
        // The first is everybody's.
        #expect(app.calls.map { $0.header("Mcp-Session-Id") } == ["session-2", "session-2", "session-3"])
        let handshakes = app.requests.filter { $0.method == "initialize" }.map { $0.body["params"] }
        #expect(handshakes.map { $0?["capabilities"] } == [[:], ["elicitation": [:]], ["elicitation": [:]]])
        #expect(handshakes.map { $0?["protocolVersion"] } == ["2025-11-25", "2025-06-18", "2025-06-18"])
        // Each answer went into the session that asked.
        let answers = app.requests.filter { $0.body["result"] != nil }.map { $0.header("Mcp-Session-Id") }
        #expect(answers == ["session-2", "session-2", "session-3"])
        #expect(rig.trust.uses.count == 3)
    }

    @Test(arguments: [nil, wayBack("roots", [.roots])])
    func `who cannot be asked is not asked, and the app hears it at once`(wayBack: ClientRequester?) async throws {
        let app = Self.sessionful()
        let rig = DeskRig(app)
        let shop = try #require(await rig.appear(kind: .mcp))
        try await rig.run {
            let result = try await AppMCPServer(shop.id, desk: rig.desk).answer(Self.request(wayBack), of: rig.owner)

            #expect(try Self.told(result).first?["error"]?["code"] == -32_601)
        }
    }

    @Test func `a caller who thinks is no app that is silent, but has not for ever`() async throws {
        let app = Self.sessionful()
        let rig = DeskRig(app) {
            $0.silence = .milliseconds(200)
            $0.longest = .milliseconds(400)
            $0.question = .seconds(1)
        }
        let shop = try #require(await rig.appear(kind: .mcp))
        let server = AppMCPServer(shop.id, desk: rig.desk)
        try await rig.run {
            let thinking = Self.wayBack { _, _, _ in
                try? await Task.sleep(for: .milliseconds(600))
                return .success(["action": "accept"])
            }
            let gone = Self.wayBack { _, _, _ in
                try? await Task.sleep(for: .seconds(60))
                return .failure(.inside("gone"))
            }

            let result = try await server.answer(Self.request(thinking), of: rig.owner)
            let late = try await server.answer(Self.request(gone), of: rig.owner)

            #expect(try Self.told(result).first?["result"] == ["action": "accept"])
            #expect(
                try Self.told(late).first?["error"]?["message"]?.string?.contains("not answered within 1 s") == true
            )
        }
    }

    @Test func `what is asked on the stream beside the requests is for the one caller whose session it is`()
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
        // Longer than the app may be silent.
        let rig = DeskRig(app) { $0.silence = .milliseconds(300) }
        let shop = try #require(await rig.appear(kind: .mcp))
        try await rig.run {
            let asked = Self.wayBack("one", [.roots]) { method, _, isBound in
                #expect(method == "roots/list" && !isBound)
                try? await Task.sleep(for: .milliseconds(700))
                return .success(["roots": []])
            }
            let result = try await AppMCPServer(shop.id, desk: rig.desk).answer(Self.request(asked), of: rig.owner)

            #expect(try Self.told(result) == [["jsonrpc": "2.0", "id": "r", "result": ["roots": []]]])
        }
    }

    @Test func `a log level counts for one caller's session`() async throws {
        let app = Self.sessionful([])
        let rig = DeskRig(app)
        let shop = try #require(await rig.appear(kind: .mcp))
        let server = AppMCPServer(shop.id, desk: rig.desk)
        let level = MCPRequest("logging/setLevel", ["level": "error"], wayBack: Self.wayBack())
        try await rig.run {
            // It answers with 202, which is no answer: what counts is where it was sent.
            _ = try? await server.answer(level, of: rig.owner)
            _ = try await server.answer(Self.request(nil), of: rig.owner)
        }
        let set = app.requests.filter { $0.method == "logging/setLevel" }
        #expect(set.map { $0.header("Mcp-Session-Id") } == ["session-2"])
        #expect(app.calls.map { $0.header("Mcp-Session-Id") } == ["session-1"])
    }

    @Test func `a session that has to make room is ended at the app`() async throws {
        let app = Self.sessionful([])
        let rig = DeskRig(app)
        let shop = try #require(await rig.appear(kind: .mcp))
        let server = AppMCPServer(shop.id, desk: rig.desk)
        try await rig.run {
            for number in 0...ClientSessionPool.limitOfOne {
                _ = try await server.answer(Self.request(Self.wayBack("\(number)")), of: rig.owner)
            }

            try await eventually("it is told") {
                app.requests.contains {
                    $0.head.hasPrefix("DELETE /mcp ") && $0.header("Mcp-Session-Id") == "session-2"
                }
            }
        }
        #expect(app.requests.count { $0.head.hasPrefix("DELETE ") } == 1)
    }

    @Test func `who goes away while the app works for it has called the app off, in the stateless era too`()
        async throws
    {
        let app = ScriptedApp { request in
            if request.method == "tools/call" { return .silence }
            return request.method == "initialize"
                ? .result(["protocolVersion": "2025-11-25", "capabilities": [:], "serverInfo": ["name": "x"]])
                : .http(202, [], "")
        }
        let rig = DeskRig(app)
        let shop = try #require(await rig.appear(kind: .mcp))
        let request = MCPRequest("tools/call", ["name": "x"], capabilities: ["roots": [:]], mayAskAgain: true)
        try await rig.run {
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask {
                    _ = try? await AppMCPServer(shop.id, desk: rig.desk).answer(request, of: rig.owner)
                }
                try await eventually("it works") { app.calls.count == 1 }
                group.cancelAll()
            }
            try await eventually("it is called off") {
                app.requests.contains { $0.method == "notifications/cancelled" }
            }
        }
    }

    @Test func `an app without sessions is met once, whatever its caller can be asked`() async throws {
        let app = ScriptedApp.appReveal()
        let rig = DeskRig(app)
        let shop = try #require(await rig.appear())
        try await rig.run {
            _ = try await AppMCPServer(shop.id, desk: rig.desk).answer(Self.request(Self.wayBack()), of: rig.owner)
        }
        #expect(app.requests.filter { $0.method == "initialize" }.count == 1)
        #expect(app.calls.count == 1)
    }

    @Test func `a caller of the stateless era is asked by a result, and the app waits for it to come back`()
        async throws
    {
        let second: JSON = ["jsonrpc": "2.0", "id": 72, "method": "elicitation/create", "params": ["message": "And?"]]
        let app = Self.sessionful([Self.question, second])
        let rig = DeskRig(app)
        let shop = try #require(await rig.appear(kind: .mcp))
        let server = AppMCPServer(shop.id, desk: rig.desk)
        @Sendable func ask(_ more: JSONObject = [:], of caller: AgentCaller? = nil) async throws -> JSONObject {
            var params: JSONObject = ["name": "ask"]
            for member in more.members { params[member.name] = member.value }
            let request = MCPRequest("tools/call", params, capabilities: ["elicitation": [:]], mayAskAgain: true)
            return try await server.answer(request, of: caller ?? rig.owner)
        }
        try await rig.run {
            let thief = AgentCaller(.grant("thief"), permissions: Permissions([.endpointCall, .secretUse], on: .all))

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
            #expect(try Self.told(last).map { $0["result"]?["action"] } == ["accept", "cancel"])
            await #expect(throws: RPCError.self) { try await ask(["requestState": state]) }
        }
        #expect(app.calls.count == 1)
        #expect(rig.trust.uses.count == 1)
    }

    @Test
    func `what an app of the stateless era asks by its result, a caller of the handshake's is asked on its stream`()
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
        let rig = DeskRig(app)
        let shop = try #require(await rig.appear(kind: .mcp))
        let server = AppMCPServer(shop.id, desk: rig.desk)
        try await rig.run {
            let result = try await server.answer(Self.request(Self.wayBack()), of: rig.owner)
            _ = try await server.answer(Self.request(Self.wayBack()), of: rig.owner)

            let params = try #require(Self.told(result).first)
            #expect(params["inputResponses"] == ["a": ["action": "accept"]])
            #expect(params["requestState"] == "s1")
            #expect(params["name"] == "ask")
        }
        let meta = app.calls.first?.body["params"]?["_meta"]
        #expect(meta?["io.modelcontextprotocol/clientCapabilities"] == ["elicitation": [:]])
        // Looked for once: it gives no sessions.
        #expect(app.requests.filter { $0.method == "initialize" }.count == 1)
        #expect(rig.trust.uses.count == 2)
    }
}
