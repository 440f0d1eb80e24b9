import Logging
import Model
import ServiceLifecycle
import SystemIO
import TestSupport
import Testing

@testable import Agents
@testable import Apps

/// Streamed responses, and streams of changes.
@Suite struct StreamTests {
    @Test func `progress is streamed before the result, with the client's token`() async throws {
        let handler = ScriptedHandler { request throws(RPCError) in
            request.notify?(RPCNotification(method: "notifications/progress", params: ["progress": 1]))
            return ["content": []]
        }
        var recorder = ResponseRecorder()

        let call = TransportFixture.stateless("tools/call", ["name": "x"], meta: ["progressToken": 7])
        try await TransportFixture(handler).transport.serve(call, of: TransportFixture.principal, to: &recorder)

        #expect(recorder.reply == nil && recorder.hasEnded)
        #expect(recorder.messages.count == 2)
        #expect(recorder.messages.first?["params"] == ["progress": 1, "progressToken": 7])
        #expect(recorder.messages.last?["result"]?["resultType"] == "complete")
    }

    @Test func `a slow request becomes a stream with keep-alive comments`() async {
        let clock = ManualClock()
        let keepAliveTimer = KeepAliveTimer(clock: clock)
        let (ends, end) = AsyncStream.makeStream(of: Void.self)
        let handler = ScriptedHandler { _ throws(RPCError) in
            for await _ in ends { break }
            return ["content": []]
        }
        let transport = StreamableHTTPTransport(
            handler,
            sessions: SessionStore(key: SessionIDSigner()),
            keepAliveTimer: keepAliveTimer
        )
        let recorder = ResponseRecorder()

        await withTaskGroup(of: Void.self) { group in
            group.addTask { try? await keepAliveTimer.run() }
            group.addTask {
                var recorder = recorder
                try? await transport.serve(
                    TransportFixture.stateless("tools/call", ["name": "x"]),
                    of: TransportFixture.principal,
                    to: &recorder
                )
            }
            while handler.requests.isEmpty { await Task.yield() }
            while !recorder.text.contains(":\n\n") {
                await clock.waitForSleeper()
                clock.advance(by: KeepAliveTimer.tickInterval)
                await Task.yield()
            }
            end.yield()
            await recorder.wait(for: "resultType")
            group.cancelAll()
        }

        #expect(recorder.reply == nil && recorder.messages.count == 1)
    }

    @Test func `a client that asked for neither progress nor logs gets no notifications`() async throws {
        let handler = ScriptedHandler { request throws(RPCError) in
            ["content": [], "told": .bool(request.notify != nil)]
        }

        let (_, json) = try await TransportFixture(handler).json(
            TransportFixture.stateless("tools/call", ["name": "x"])
        )

        #expect(json?["result"]?["told"] == false)
    }

    @Test func `log messages below the requested level are dropped`() async throws {
        let handler = ScriptedHandler { request throws(RPCError) in
            for level in ["debug", "warning", "alert"] {
                request.notify?(
                    RPCNotification(method: "notifications/message", params: ["level": .string(level), "data": "x"])
                )
            }
            return ["content": []]
        }
        var recorder = ResponseRecorder()

        let call = TransportFixture.stateless(
            "tools/call",
            ["name": "x"],
            meta: ["io.modelcontextprotocol/logLevel": "warning"]
        )
        try await TransportFixture(handler).transport.serve(call, of: TransportFixture.principal, to: &recorder)

        #expect(recorder.messages.compactMap { $0["params"]?["level"]?.string } == ["warning", "alert"])
    }

    @Test func `a subscription stream starts with the accepted subscriptions and sends only those`() async throws {
        let fixture = TransportFixture()
        let call = TransportFixture.stateless(
            "subscriptions/listen",
            [
                "notifications": [
                    "toolsListChanged": true, "promptsListChanged": true, "resourceSubscriptions": ["a:1"],
                ]
            ],
            id: "sub"
        )

        try await fixture.serving(call) { recorder in
            await recorder.wait(for: "acknowledged")
            for change in [ServerChange.resources, .resource("a:2"), .resource("a:1"), .prompts, .tools] {
                fixture.handler.publish(change)
            }
            await recorder.wait(for: "tools/list_changed")

            #expect(
                recorder.messages.first?["params"]?["notifications"]
                    == ["toolsListChanged": true, "resourceSubscriptions": ["a:1"]]
            )
            #expect(
                recorder.messages.compactMap { $0["method"]?.string } == [
                    "notifications/subscriptions/acknowledged", "notifications/resources/updated",
                    "notifications/tools/list_changed",
                ]
            )
            for message in recorder.messages {
                #expect(message["params"]?["_meta"]?["io.modelcontextprotocol/subscriptionId"] == "sub")
            }
        }
    }

    /// Returns a handler that answers a subscription to `a:late` only after `isBack` is completed.
    private static func late(until isBack: Promise<Void>) -> ScriptedHandler {
        ScriptedHandler { request throws(RPCError) in
            if request.params["uri"] == "a:late" { try? await isBack.value() }
            return [:]
        }
    }

    private static var twoResources: MCPHTTPRequest {
        TransportFixture.stateless(
            "subscriptions/listen",
            ["notifications": ["resourceSubscriptions": ["a:1", "a:late"]]]
        )
    }

    @Test func `an app that does not answer delays the acknowledgement for half a second, and later changes are told`()
        async throws
    {
        let (clock, isBack) = (ManualClock(), Promise<Void>())
        let fixture = TransportFixture(Self.late(until: isBack), clock: clock)

        try await fixture.serving(Self.twoResources) { recorder in
            await clock.waitForSleeper()
            #expect(recorder.messages.isEmpty)
            clock.advance(by: ChangeStreamHandler.acknowledgementDelay)
            await recorder.wait(for: "acknowledged")
            #expect(
                recorder.messages.first?["params"]?["notifications"]?["resourceSubscriptions"] == ["a:1", "a:late"]
            )
            isBack.complete(.success(()))
            // What changed between the acknowledgement and the subscription is not known.
            await recorder.wait(for: "resources/updated")

            #expect(recorder.messages.compactMap { $0["params"]?["uri"]?.string } == ["a:late"])
        }
    }

    @Test func `a subscription that the app accepts at once is told of no change that did not happen`() async throws {
        let isBack = Promise<Void>()
        isBack.complete(.success(()))
        let fixture = TransportFixture(Self.late(until: isBack), clock: ManualClock())

        try await fixture.serving(Self.twoResources) { recorder in
            await recorder.wait(for: "acknowledged")
            fixture.handler.publish(.resource("a:1"))
            await recorder.wait(for: "resources/updated")

            #expect(recorder.messages.compactMap { $0["params"]?["uri"]?.string } == ["a:1"])
        }
    }

    @Test func `subscribers get the final response when the broker stops`() async throws {
        let fixture = TransportFixture()
        let call = TransportFixture.stateless(
            "subscriptions/listen",
            ["notifications": ["toolsListChanged": true]],
            id: 9
        )
        let recorder = ResponseRecorder()
        let group = ServiceGroup(
            services: [
                Serving {
                    var recorder = recorder
                    try await fixture.transport.serve(call, of: TransportFixture.principal, to: &recorder)
                }
            ],
            logger: .init(label: "test")
        )

        await withTaskGroup(of: Void.self) { tasks in
            tasks.addTask { try? await group.run() }
            await recorder.wait(for: "acknowledged")
            await group.triggerGracefulShutdown()
        }

        #expect(recorder.hasEnded)
        #expect(recorder.messages.last?["id"] == 9)
        #expect(recorder.messages.last?["result"]?["resultType"] == "complete")
    }

    @Test func `a GET stream sends the subscriptions of its session`() async throws {
        let fixture = TransportFixture()
        let session = try await fixture.handshake()
        let headers = ["Mcp-Session-Id": [session], "Accept": ["text/event-stream"]]
        func post(_ method: String, _ uri: JSON) async throws {
            let call = TransportFixture.call(
                TransportFixture.request(method, ["uri": uri]),
                headers: ["Mcp-Session-Id": [session]]
            )
            #expect(try await fixture.json(call).status == 200)
        }
        try await post("resources/subscribe", "a:1")
        try await post("resources/subscribe", "a:2")
        try await post("resources/unsubscribe", "a:2")

        try await fixture.serving(TransportFixture.call(nil, .get, headers: headers)) { recorder in
            await recorder.wait(for: "retry")
            for change in [ServerChange.resource("a:2"), .prompts, .resource("a:1"), .tools] {
                fixture.handler.publish(change)
            }
            await recorder.wait(for: "tools/list_changed")

            #expect(
                recorder.messages == [
                    [
                        "jsonrpc": "2.0", "method": "notifications/resources/updated", "params": ["uri": "a:1"],
                    ], ["jsonrpc": "2.0", "method": "notifications/tools/list_changed"],
                ]
            )
        }
    }

    @Test func `a stream that reconnects after a restart is told of the changed lists only`() async throws {
        let key = SessionIDSigner()
        let session = try await TransportFixture(key: key).handshake()
        let headers = ["Mcp-Session-Id": [session]]
        let handler = ScriptedHandler(changedLists: [.resources, .prompts])

        try await TransportFixture(handler, key: key).serving(TransportFixture.call(nil, .get, headers: headers)) {
            recorder in
            await recorder.wait(for: "resources/list_changed")

            // The handler announces no changes of prompts.
            #expect(recorder.messages.compactMap { $0["method"]?.string } == ["notifications/resources/list_changed"])
        }
    }

    @Test func `a resumed stream reads the lists again, so that a difference is published`() async throws {
        let key = SessionIDSigner()
        let session = try await TransportFixture(key: key).handshake()
        let handler = ScriptedHandler()
        let fixture = TransportFixture(handler, key: key)

        try await fixture.serving(TransportFixture.call(nil, .get, headers: ["Mcp-Session-Id": [session]])) {
            recorder in
            while !handler.requests.contains(where: { $0.method == "resources/list" }) { await Task.yield() }
            #expect(recorder.messages.isEmpty)
        }
    }

    @Test func `a second stream of a session replaces the first`() async throws {
        let fixture = TransportFixture()
        let session = try await fixture.handshake()
        let call = TransportFixture.call(nil, .get, headers: ["Mcp-Session-Id": [session]])
        var first = ResponseRecorder()

        let recorder = first
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                await recorder.wait(for: "retry")
                try await fixture.serving(call) { second in
                    await second.wait(for: "retry")
                    while !recorder.hasEnded { await Task.yield() }
                }
            }
            try await fixture.transport.serve(call, of: TransportFixture.principal, to: &first)
            try await group.waitForAll()
        }

        #expect(first.hasEnded)
    }

    @Test func `2026-07-28 has no GET stream`() async throws {
        let call = TransportFixture.call(nil, .get, headers: ["MCP-Protocol-Version": ["2026-07-28"]])

        #expect(try await TransportFixture().json(call).status == 405)
    }
}

/// A service that runs a closure.
private struct Serving: Service {
    let body: @Sendable () async throws -> Void

    init(_ body: @escaping @Sendable () async throws -> Void) { self.body = body }

    func run() async throws { try await body() }
}
