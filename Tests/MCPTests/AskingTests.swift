import JSON
import Model
import TestSupport
import Synchronization
import Testing

@testable import MCP

/// Questions on the stream of a client's own request, in the eras of the handshake.
@Suite struct AskingTests {
    private static let able: JSON = ["elicitation": [:], "roots": ["listChanged": true]]

    /// A server that asks the caller's name, and says it.
    private static let asking = ScriptedServer { request throws(RPCError) in
        guard let wayBack = request.wayBack else { return ["content": [], "isError": true] }
        let answer = await wayBack.ask("elicitation/create", ["message": "Who are you?"], true)
        return ["content": [["type": "text", "text": .string((try? answer.get())?["action"]?.string ?? "\(answer)")]]]
    }

    private static func call(_ session: String, accept: String = DoorBench.both) -> MCPHTTPRequest {
        DoorBench.call(
            DoorBench.request("tools/call", ["name": "x"], id: 9),
            headers: ["Mcp-Session-Id": [session], "Accept": [accept]]
        )
    }

    private static func answer(_ id: JSON, _ session: String, action: JSON = "accept") -> MCPHTTPRequest {
        DoorBench.call(
            ["jsonrpc": "2.0", "id": id, "result": ["action": action]],
            headers: ["Mcp-Session-Id": [session]]
        )
    }

    private static func question(_ answers: Answers) async throws -> JSON {
        try await eventually("the client is asked") { answers.messages.first { $0["method"] == "elicitation/create" } }
    }

    @Test func `a client is asked on the stream of its request, and its answer goes back`() async throws {
        let bench = DoorBench(Self.asking)
        let session = try await bench.handshake("2025-06-18", Self.able)

        try await bench.serving(Self.call(session)) { answers in
            let question = try await Self.question(answers)
            let taken = try await bench.reply(to: Self.answer(question["id"] ?? .null, session))
            try await eventually("it ends") { answers.hasEnded }

            #expect(question["params"] == ["message": "Who are you?"])
            #expect(taken?.status == 202)
            #expect(answers.messages.last?["id"] == 9)
            #expect(answers.messages.last?["result"]?["content"]?.array?.first?["text"] == "accept")
        }
        let asked = try #require(Self.asking.requests.last)
        #expect(asked.capabilities == ["roots": [:], "elicitation": [:]])
        #expect(asked.wayBack?.revision == .june2025)
    }

    @Test func `what a client can be asked is known after a restart`() async throws {
        let key = SessionIDSigner()
        let session = try await DoorBench(key: key).handshake("2025-11-25", Self.able)
        let bench = DoorBench(Self.asking, key: key)

        try await bench.serving(Self.call(session)) { answers in
            let question = try await Self.question(answers)
            _ = try await bench.reply(to: Self.answer(question["id"] ?? .null, session))
            try await eventually("it ends") { answers.hasEnded }
        }
    }

    @Test func `nobody else can answer: no other session, and no other holder of the same id`() async throws {
        let bench = DoorBench(Self.asking)
        let (mine, other) = (
            try await bench.handshake("2025-11-25", Self.able), try await bench.handshake("2025-11-25", Self.able)
        )
        let thief = AgentCaller(.grant("thief"), permissions: Permissions([.endpointCall], on: .all))

        try await bench.serving(Self.call(mine)) { answers in
            let id = try await Self.question(answers)["id"] ?? .null
            #expect(try await bench.reply(to: Self.answer(id, other, action: "decline"))?.status == 202)
            #expect(try await bench.reply(to: Self.answer(id, mine, action: "cancel"), of: thief)?.status == 202)
            #expect(try await bench.reply(to: Self.answer("guessed", mine, action: "cancel"))?.status == 202)
            _ = try await bench.reply(to: Self.answer(id, mine))
            try await eventually("it ends") { answers.hasEnded }

            #expect(answers.messages.last?["result"]?["content"]?.array?.first?["text"] == "accept")
        }
    }

    @Test func `who said in its handshake that it can be asked nothing, or reads no stream, has no way back`()
        async throws
    {
        let bench = DoorBench(Self.asking)
        let (unable, able) = (try await bench.handshake(), try await bench.handshake("2025-11-25", Self.able))

        let first = try await bench.json(Self.call(unable))
        let second = try await bench.json(Self.call(able, accept: "application/json"))
        let modern = try await bench.json(DoorBench.modern("tools/call", ["name": "x"]))

        for answer in [first, second, modern] { #expect(answer.1?["result"]?["isError"] == true) }
    }

    @Test func `the app hears at once that its question is for nobody any more`() async throws {
        let outcome = Mutex<Result<JSON, RPCError>?>(nil)
        let server = ScriptedServer { request throws(RPCError) in
            let answer = await request.wayBack?.ask("elicitation/create", [:], true)
            outcome.withLock { $0 = answer }
            return ["content": []]
        }
        let bench = DoorBench(server)
        let session = try await bench.handshake("2025-11-25", Self.able)
        let leave = Mutex<(@Sendable () -> Void)?>(nil)
        let call = DoorBench.call(
            DoorBench.request("tools/call", ["name": "x"]),
            headers: ["Mcp-Session-Id": [session]]
        ) { farewell in leave.withLock { $0 = farewell } }

        try await bench.serving(call) { answers in
            let id = try await Self.question(answers)["id"] ?? .null
            leave.withLock { $0 }?()
            try await eventually("the app has an error") { outcome.withLock { $0 } != nil }
            // Too late, and nobody's any more.
            #expect(try await bench.reply(to: Self.answer(id, session))?.status == 202)
        }

        #expect(throws: RPCError.self) { try outcome.withLock { $0 }?.get() }
    }

    @Test func `what belongs to none of a client's requests goes over any, and does not end with it`() async throws {
        let (released, release) = AsyncStream.makeStream(of: Void.self)
        let server = ScriptedServer { request throws(RPCError) in
            if request.params["name"] == "carrier" {
                for await _ in released { break }
                return ["content": []]
            }
            let answer = await request.wayBack?.ask("roots/list", nil, false)
            return ["content": [], "isError": .bool((try? answer?.get()) == nil)]
        }
        let bench = DoorBench(server)
        let session = try await bench.handshake("2025-11-25", Self.able)
        let headers = ["Mcp-Session-Id": [session]]
        let carrier = DoorBench.call(DoorBench.request("tools/call", ["name": "carrier"], id: 1), headers: headers)
        let other = DoorBench.call(DoorBench.request("tools/call", ["name": "other"], id: 2), headers: headers)

        try await bench.serving(carrier) { carrying in
            try await eventually("it runs") { !server.requests.isEmpty }
            try await bench.serving(other) { asking in
                let question: JSON = try await eventually("the client is asked") {
                    (carrying.messages + asking.messages).first { $0["method"] == "roots/list" }
                }
                release.yield()
                try await eventually("the carrier ends") { carrying.hasEnded || carrying.reply != nil }
                _ = try await bench.reply(
                    to: DoorBench.call(
                        ["jsonrpc": "2.0", "id": question["id"] ?? .null, "result": ["roots": []]],
                        headers: headers
                    )
                )
                try await eventually("it ends") { asking.hasEnded || asking.reply != nil }
                let body = asking.reply.flatMap { try? JSON(parsing: $0.body) } ?? asking.messages.last

                #expect(body?["result"]?["isError"] == false)
            }
        }
    }

    @Test func `a client hears when the app does not want to know any more`() async throws {
        let server = ScriptedServer { request throws(RPCError) in
            _ = try? await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { _ = await request.wayBack?.ask("elicitation/create", [:], true) }
                group.addTask { try await Task.sleep(for: .milliseconds(50)) }
                try await group.next()
                group.cancelAll()
            }
            return ["content": []]
        }
        let bench = DoorBench(server)
        let session = try await bench.handshake("2025-11-25", Self.able)

        try await bench.serving(Self.call(session)) { answers in
            try await eventually("it ends") { answers.hasEnded }
            let cancelled = answers.messages.first { $0["method"] == "notifications/cancelled" }

            #expect(cancelled?["params"]?["requestId"] == answers.messages.first?["id"])
        }
    }

    @Test func `log messages below the level that a session asked for are left out`() async throws {
        let server = ScriptedServer { request throws(RPCError) in
            guard request.method == "tools/call" else { throw .unknownMethod(request.method) }
            for level in ["debug", "error"] {
                request.notify?(RPCNotification(method: "notifications/message", params: ["level": .string(level)]))
            }
            return ["content": [], "level": request.logLevel.map { .string($0) } ?? .null]
        }
        let bench = DoorBench(server)
        let session = try await bench.handshake()
        let set = DoorBench.call(
            DoorBench.request("logging/setLevel", ["level": "warning"]),
            headers: ["Mcp-Session-Id": [session]]
        )

        try await bench.serving(Self.call(session)) { answers in
            try await eventually("it ends") { answers.hasEnded }
            #expect(answers.messages.count == 3)
            #expect(answers.messages.last?["result"]?["level"] == "debug")
        }
        #expect(try await bench.json(set).1?["result"] == [:])
        try await bench.serving(Self.call(session)) { answers in
            try await eventually("it ends") { answers.hasEnded }
            #expect(answers.messages.compactMap { $0["params"]?["level"] } == ["error"])
            #expect(answers.messages.last?["result"]?["level"] == "warning")
            // At an app the level is a session's, and not everybody's.
            #expect(server.requests.map { $0.wayBack?.key } == [nil, session, session])
            #expect(server.requests.last?.capabilities == [:])
        }
    }
}
