import AccessControl
import Model
import Samples
import TestSupport
import Testing

@testable import Apps

/// The trace context of a client on the way to an app.
@Suite struct TracePassingTests {
    private static let header = TraceContext(parent: parent("1"), state: "a=1")
    private static let meta = TraceContext(parent: parent("2"), state: nil)

    private static func parent(_ digit: String) -> String {
        "00-\(String(repeating: digit, count: 32))-\(String(repeating: digit, count: 16))-01"
    }

    private static func call(_ trace: CallTrace) -> MCPRequest {
        var request = MCPRequest("tools/call", ["name": "tap", "_meta": ["com.example/x": 1]])
        request.trace = trace
        return request
    }

    @Test func `a context leaves in the form in which it came, and nothing is sent without one`() async throws {
        let app = ScriptedApp.appReveal()
        let fixture = AppProxyFixture(app)
        let shop = try #require(await fixture.appear())
        let handler = AppRequestHandler(shop.id, proxy: fixture.proxy)

        for trace in [CallTrace(header: Self.header), CallTrace(meta: Self.meta), CallTrace()] {
            _ = try await handler.answer(Self.call(trace), of: fixture.owner)
        }
        _ = try await handler.answer(MCPRequest("tools/list"), of: fixture.owner)

        let calls = app.requests.filter { $0.method == "tools/call" }
        #expect(calls.map { $0.header("traceparent") } == [Self.header?.parent, nil, nil])
        #expect(calls.map { $0.header("tracestate") } == ["a=1", nil, nil])
        let metas = calls.map { $0.body["params"]?["_meta"] }
        #expect(metas.map { $0?["traceparent"]?.string } == [nil, Self.meta?.parent, nil])
        #expect(metas.allSatisfy { $0?["com.example/x"] == 1 && $0?["tracestate"] == nil })
        let others = app.requests.filter { $0.method != "tools/call" }
        #expect(!others.isEmpty && !others.contains { $0.head.contains("traceparent") })
    }

    @Test func `the activity and the audit log have the ID of the trace`() async throws {
        let fixture = AppProxyFixture(ScriptedApp.appReveal())
        let shop = try #require(await fixture.appear())
        let handler = AppRequestHandler(shop.id, proxy: fixture.proxy)

        let both = CallTrace(header: Self.header, meta: Self.meta)
        _ = try await handler.answer(Self.call(both), of: fixture.owner)
        let call = ToolCall("tap", of: shop, trace: CallTrace(header: Self.header))
        _ = await fixture.call(call, of: fixture.owner)

        let ids = [Self.meta?.traceID, Self.header?.traceID]
        #expect(await fixture.activity.entries(for: fixture.owner).entries.map(\.entry.call?.trace) == ids)
        #expect(fixture.authorizer.events.map(\.trace) == ids)
    }

    @Test func `a client that may not call an app sends it no context`() async throws {
        let app = ScriptedApp.appReveal()
        let fixture = AppProxyFixture(app)
        let shop = try #require(await fixture.appear())
        let handler = AppRequestHandler(shop.id, proxy: fixture.proxy)

        let reader: Principal = .holder(of: "g", [.registryRead])
        _ = try? await handler.answer(Self.call(CallTrace(header: Self.header, meta: Self.meta)), of: reader)

        #expect(!app.requests.contains { $0.head.contains("traceparent") || $0.body["params"]?["_meta"] != nil })
    }

    @Test func `a line-based server gets the context of a header in the metadata`() async throws {
        let app = ScriptedLines.legacy { _ in .result(["content": []]) }
        let fixture = AppProxyFixture(app)
        let shop = try #require(await fixture.appear(kind: .mcp, source: .bonjour))
        let handler = AppRequestHandler(shop.id, proxy: fixture.proxy)

        _ = try await handler.answer(Self.call(CallTrace(header: Self.header)), of: fixture.owner)

        let meta = app.messages.last?["params"]?["_meta"]
        #expect(meta?["traceparent"]?.string == Self.header?.parent && meta?["tracestate"] == "a=1")
    }

    @Test func `a plain HTTP server gets the context of the metadata in a header`() async throws {
        let server = PlainServer.appDebug()
        let fixture = AppProxyFixture(server, profiles: [try .shipped("app-debug")])
        let shop = try #require(await fixture.appear(kind: .appDebug))
        let handler = AppRequestHandler(shop.id, proxy: fixture.proxy)
        var call = MCPRequest("tools/call", ["name": "list_actions"])
        call.trace = CallTrace(meta: Self.meta)

        _ = try await handler.answer(call, of: fixture.owner)

        let traced = server.requests.filter { $0.contains("traceparent: \(Self.meta?.parent ?? "")\r\n") }
        #expect(traced.count == 1 && traced.first?.hasPrefix("GET /actions ") == true)
    }
}
