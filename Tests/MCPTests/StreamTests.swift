import JSON
import Logging
import ServiceLifecycle
import Testing

@testable import MCP

/// Answers that are streams: of one request, and of changes.
@Suite struct StreamTests {
    @Test func `progress comes before the answer, on a stream, with the caller's token`() async throws {
        let server = ScriptedServer { request throws(RPCError) in
            request.notify?(RPCNotification(method: "notifications/progress", params: ["progress": 1]))
            return ["content": []]
        }
        var answers = Answers()

        let call = DoorBench.modern("tools/call", ["name": "x"], meta: ["progressToken": 7])
        try await DoorBench(server).door.serve(call, of: DoorBench.caller, to: &answers)

        #expect(answers.reply == nil && answers.hasEnded)
        #expect(answers.messages.count == 2)
        #expect(answers.messages.first?["params"] == ["progress": 1, "progressToken": 7])
        #expect(answers.messages.last?["result"]?["resultType"] == "complete")
    }

    @Test func `a long silence becomes a stream with a sign of life, so that nobody gives up`() async {
        let clock = StillClock()
        let heartbeat = KeepAliveTimer(clock: clock)
        let (ends, end) = AsyncStream.makeStream(of: Void.self)
        let server = ScriptedServer { _ throws(RPCError) in
            for await _ in ends { break }
            return ["content": []]
        }
        let door = StreamableHTTPTransport(server, sessions: SessionStore(key: SessionIDSigner()), heartbeat: heartbeat)
        let answers = Answers()

        await withTaskGroup(of: Void.self) { group in
            group.addTask { try? await heartbeat.run() }
            group.addTask {
                var answers = answers
                try? await door.serve(DoorBench.modern("tools/call", ["name": "x"]), of: DoorBench.caller, to: &answers)
            }
            while server.requests.isEmpty { await Task.yield() }
            for _ in 1...3 {
                await clock.waitForSleeper()
                clock.advance(by: KeepAliveTimer.pause)
            }
            await answers.waits(for: ":\n\n")
            end.yield()
            await answers.waits(for: "resultType")
            group.cancelAll()
        }

        #expect(answers.reply == nil && answers.messages.count == 1)
    }

    @Test func `who asked for no progress and no log is told nothing`() async throws {
        let server = ScriptedServer { request throws(RPCError) in ["content": [], "told": .bool(request.notify != nil)]
        }

        let (_, json) = try await DoorBench(server).json(DoorBench.modern("tools/call", ["name": "x"]))

        #expect(json?["result"]?["told"] == false)
    }

    @Test func `log messages below the level that was asked for are left out`() async throws {
        let server = ScriptedServer { request throws(RPCError) in
            for level in ["debug", "warning", "alert"] {
                request.notify?(
                    RPCNotification(method: "notifications/message", params: ["level": .string(level), "data": "x"])
                )
            }
            return ["content": []]
        }
        var answers = Answers()

        let call = DoorBench.modern("tools/call", ["name": "x"], meta: ["io.modelcontextprotocol/logLevel": "warning"])
        try await DoorBench(server).door.serve(call, of: DoorBench.caller, to: &answers)

        #expect(answers.messages.compactMap { $0["params"]?["level"]?.string } == ["warning", "alert"])
    }

    @Test func `listening begins with what was taken, and tells only that`() async throws {
        let bench = DoorBench()
        let call = DoorBench.modern(
            "subscriptions/listen",
            [
                "notifications": [
                    "toolsListChanged": true, "promptsListChanged": true, "resourceSubscriptions": ["a:1"],
                ]
            ],
            id: "sub"
        )

        try await bench.serving(call) { answers in
            await answers.waits(for: "acknowledged")
            for change in [ServerChange.resources, .resource("a:2"), .resource("a:1"), .prompts, .tools] {
                bench.server.tell(change)
            }
            await answers.waits(for: "tools/list_changed")

            #expect(
                answers.messages.first?["params"]?["notifications"]
                    == ["toolsListChanged": true, "resourceSubscriptions": ["a:1"]]
            )
            #expect(
                answers.messages.compactMap { $0["method"]?.string } == [
                    "notifications/subscriptions/acknowledged", "notifications/resources/updated",
                    "notifications/tools/list_changed",
                ]
            )
            for message in answers.messages {
                #expect(message["params"]?["_meta"]?["io.modelcontextprotocol/subscriptionId"] == "sub")
            }
        }
    }

    @Test func `when the broker stops, whoever listens gets the answer`() async throws {
        let bench = DoorBench()
        let call = DoorBench.modern("subscriptions/listen", ["notifications": ["toolsListChanged": true]], id: 9)
        let answers = Answers()
        let group = ServiceGroup(
            services: [
                Serving {
                    var answers = answers
                    try await bench.door.serve(call, of: DoorBench.caller, to: &answers)
                }
            ],
            logger: .init(label: "test")
        )

        await withTaskGroup(of: Void.self) { tasks in
            tasks.addTask { try? await group.run() }
            await answers.waits(for: "acknowledged")
            await group.triggerGracefulShutdown()
        }

        #expect(answers.hasEnded)
        #expect(answers.messages.last?["id"] == 9)
        #expect(answers.messages.last?["result"]?["resultType"] == "complete")
    }

    @Test func `the stream of an older client tells what its session subscribed to`() async throws {
        let bench = DoorBench()
        let session = try await bench.handshake()
        let headers = ["Mcp-Session-Id": [session], "Accept": ["text/event-stream"]]
        func post(_ method: String, _ uri: JSON) async throws {
            let call = DoorBench.call(DoorBench.request(method, ["uri": uri]), headers: ["Mcp-Session-Id": [session]])
            #expect(try await bench.json(call).status == 200)
        }
        try await post("resources/subscribe", "a:1")
        try await post("resources/subscribe", "a:2")
        try await post("resources/unsubscribe", "a:2")

        try await bench.serving(DoorBench.call(nil, .get, headers: headers)) { answers in
            await answers.waits(for: "retry")
            for change in [ServerChange.resource("a:2"), .prompts, .resource("a:1"), .tools] {
                bench.server.tell(change)
            }
            await answers.waits(for: "tools/list_changed")

            #expect(
                answers.messages == [
                    [
                        "jsonrpc": "2.0", "method": "notifications/resources/updated", "params": ["uri": "a:1"],
                    ], ["jsonrpc": "2.0", "method": "notifications/tools/list_changed"],
                ]
            )
        }
    }

    @Test func `a stream that comes back after a restart is told to look at everything again`() async throws {
        let key = SessionIDSigner()
        let session = try await DoorBench(key: key).handshake()
        let headers = ["Mcp-Session-Id": [session]]

        try await DoorBench(key: key).serving(DoorBench.call(nil, .get, headers: headers)) { answers in
            await answers.waits(for: "resources/list_changed")

            let methods = answers.messages.compactMap { $0["method"]?.string }
            #expect(methods.contains("notifications/tools/list_changed"))
        }
    }

    @Test func `a second stream of a session takes the place of the first`() async throws {
        let bench = DoorBench()
        let session = try await bench.handshake()
        let call = DoorBench.call(nil, .get, headers: ["Mcp-Session-Id": [session]])
        var first = Answers()

        let answers = first
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                await answers.waits(for: "retry")
                try await bench.serving(call) { second in
                    await second.waits(for: "retry")
                    while !answers.hasEnded { await Task.yield() }
                }
            }
            try await bench.door.serve(call, of: DoorBench.caller, to: &first)
            try await group.waitForAll()
        }

        #expect(first.hasEnded)
    }

    @Test func `2026-07-28 has no stream by GET`() async throws {
        let call = DoorBench.call(nil, .get, headers: ["MCP-Protocol-Version": ["2026-07-28"]])

        #expect(try await DoorBench().json(call).status == 405)
    }
}

/// Something to run under a service group.
private struct Serving: Service {
    let body: @Sendable () async throws -> Void

    init(_ body: @escaping @Sendable () async throws -> Void) { self.body = body }

    func run() async throws { try await body() }
}
