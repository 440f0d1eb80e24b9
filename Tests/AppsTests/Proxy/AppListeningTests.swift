import AccessControl
import Model
import Samples
import Synchronization
import TestSupport
import Testing

@testable import Apps

@Suite struct AppListeningTests {
    private static let updated: JSON = [
        "jsonrpc": "2.0", "method": "notifications/resources/updated", "params": ["uri": "a:1"],
    ]

    @Test func `a session-mode app is followed while there are subscribers, with their subscriptions`()
        async throws
    {
        let app = ScriptedApp { request in
            if request.head.hasPrefix("GET ") { return .open([Self.updated]) }
            return switch request.method {
            case "initialize":
                .result([
                    "protocolVersion": "2025-11-25", "serverInfo": ["name": "x"],
                    "capabilities": ["resources": ["subscribe": true]],
                ])
            case "resources/subscribe": .result([:])
            default: .error(-32_601, "no")
            }
        }
        let fixture = AppProxyFixture(app)
        let shop = try #require(await fixture.appear(kind: .mcp))
        let handler = AppRequestHandler(shop.id, proxy: fixture.proxy)
        try await fixture.run {
            _ = try await handler.answer(MCPRequest("resources/subscribe", ["uri": "a:1"]), of: fixture.owner)

            try await Self.expect(.resource("a:1"), of: handler, fixture)
            try await eventually("the change stream is closed") { app.open == 0 }
        }
        #expect(app.requests.filter { $0.method == "resources/subscribe" }.count == 2)
    }

    @Test func `a stateless app gets all subscriptions in one request, which is repeated for a new one`()
        async throws
    {
        let app = ScriptedApp { request in
            switch request.method {
            case "server/discover":
                .result([
                    "supportedVersions": ["2026-07-28"],
                    "capabilities": ["tools": ["listChanged": true], "resources": ["subscribe": true]],
                ])
            case "subscriptions/listen":
                .open(
                    request.body["params"]?["notifications"]?["resourceSubscriptions"] == ["a:1"] ? [Self.updated] : []
                )
            default: .error(-32_601, "no")
            }
        }
        let fixture = AppProxyFixture(app)
        let shop = try #require(await fixture.appear(kind: .mcp))
        let handler = AppRequestHandler(shop.id, proxy: fixture.proxy)
        try await fixture.run {
            let changes = handler.changes(for: fixture.owner)
            try await eventually("the change stream is open") {
                app.requests.contains { $0.method == "subscriptions/listen" }
            }

            _ = try await handler.answer(MCPRequest("resources/subscribe", ["uri": "a:1"]), of: fixture.owner)

            var iterator = changes.makeAsyncIterator()
            #expect(await iterator.next() == .resource("a:1"))
        }
        #expect(!app.requests.contains { $0.method == "resources/subscribe" })
    }

    @Test func `an idle change stream is opened again`() async throws {
        let app = ScriptedApp { request in
            if request.head.hasPrefix("GET ") { return .open([]) }
            return request.method == "initialize"
                ? .result([
                    "protocolVersion": "2025-11-25", "serverInfo": ["name": "x"],
                    "capabilities": ["tools": ["listChanged": true]],
                ]) : .error(-32_601, "no")
        }
        let fixture = AppProxyFixture(app) { $0.changeStreamIdle = .milliseconds(50) }
        let shop = try #require(await fixture.appear(kind: .mcp))
        try await fixture.run {
            let changes = AppRequestHandler(shop.id, proxy: fixture.proxy).changes(for: fixture.owner)

            try await eventually("the change stream is opened again") {
                app.requests.count { $0.head.hasPrefix("GET ") } >= 3
            }
            withExtendedLifetime(changes) {}
        }
    }

    @Test func `a cut stream is opened again without an event, and subscribers are told of what may have changed`()
        async throws
    {
        let streams = Mutex(0)
        let app = Self.subscribable(tools: { streams.withLock { $0 > 2 } ? [["name": "new"]] : [] }) { request in
            let number = streams.withLock { count in
                count += 1
                return count
            }
            // The app ends during the first stream, and refuses once before it is back.
            switch number {
            case 1: return .raw("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
            case 2: return .drop
            default: return .open([])
            }
        }
        let fixture = AppProxyFixture(app)
        let shop = try #require(await fixture.appear(kind: .mcp))
        let handler = AppRequestHandler(shop.id, proxy: fixture.proxy)
        try await fixture.run {
            _ = try await handler.answer(MCPRequest("tools/list"), of: fixture.owner)
            _ = try await handler.answer(MCPRequest("resources/subscribe", ["uri": "a:1"]), of: fixture.owner)

            try await Self.expect([.tools, .resource("a:1")], of: handler, for: fixture.owner)
        }
    }

    /// semantic-kernel waits for itself after each notification of a list.
    @Test func `a stream that is opened again tells of a list of tools only if it differs`() async throws {
        let streams = Mutex(0)
        let app = Self.subscribable { _ in
            let isFirst = streams.withLock { count in
                count += 1
                return count == 1
            }
            return isFirst ? .raw("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n") : .open([])
        }
        let fixture = AppProxyFixture(app)
        let shop = try #require(await fixture.appear(kind: .mcp))
        let handler = AppRequestHandler(shop.id, proxy: fixture.proxy)
        try await fixture.run {
            _ = try await handler.answer(MCPRequest("tools/list"), of: fixture.owner)
            _ = try await handler.answer(MCPRequest("resources/subscribe", ["uri": "a:1"]), of: fixture.owner)

            var changes = handler.changes(for: fixture.owner).makeAsyncIterator()
            #expect(await changes.next() == .resource("a:1"))
        }
    }

    @Test func `the end of a launch opens the stream again at once`() async throws {
        let launches = Mutex(0)
        let app = Self.subscribable(tools: { launches.withLock { $0 > 1 } ? [["name": "new"]] : [] }) { _ in
            launches.withLock { $0 += 1 }
            return .open([])
        }
        let fixture = AppProxyFixture(app)
        let shop = try #require(await fixture.appear(kind: .mcp))
        let handler = AppRequestHandler(shop.id, proxy: fixture.proxy)
        try await fixture.run {
            _ = try await handler.answer(MCPRequest("tools/list"), of: fixture.owner)
            let changes = handler.changes(for: fixture.owner)
            try await eventually("the change stream is open") { app.open == 1 }

            await fixture.proxy.endLaunch(of: shop.id)

            var iterator = changes.makeAsyncIterator()
            #expect(await iterator.next() == .tools)
            #expect(app.requests.count { $0.method == "initialize" } >= 2)
        }
    }

    @Test func `a subscriber without the permission for the token does not end the subscription of another one`()
        async throws
    {
        let app = Self.subscribable { _ in .open([Self.updated]) }
        app.set(token: "secret")
        let fixture = AppProxyFixture(app)
        let shop = try #require(await fixture.appear(kind: .mcp))
        try fixture.authorizer.set(secret: "secret", of: shop.id)
        let handler = AppRequestHandler(shop.id, proxy: fixture.proxy)
        let limited = Principal.holder(of: "limited", [.registryRead, .endpointCall])
        let stranger = Principal.holder(of: "stranger", [.registryRead])
        try await fixture.run {
            let first = handler.changes(for: limited)
            let none = handler.changes(for: stranger)

            try await Self.expect([.resource("a:1")], of: handler, for: fixture.owner)
            withExtendedLifetime((first, none)) {}
        }
        #expect(!fixture.proxy.pool.mayReceive(.resource("a:1"), of: shop.id, stranger))
    }

    @Test func `a subscription to an app that is not reachable begins when the app is back`() async throws {
        let app = Self.subscribable { _ in .open([Self.updated]) }
        let fixture = AppProxyFixture(app) { $0.wait = .milliseconds(1) }
        let shop = try #require(await fixture.appear(kind: .mcp))
        let handler = AppRequestHandler(shop.id, proxy: fixture.proxy)
        app.set(isUp: false)
        try await fixture.run {
            await #expect(throws: RPCError.self) {
                _ = try await handler.answer(MCPRequest("resources/subscribe", ["uri": "a:1"]), of: fixture.owner)
            }
            app.set(isUp: true)

            try await Self.expect([.resource("a:1")], of: handler, for: fixture.owner)
        }
        #expect(app.requests.contains { $0.method == "resources/subscribe" })
    }

    @Test func `an app that announces no changes is not followed`() async throws {
        let app = ScriptedApp.appReveal()
        let fixture = AppProxyFixture(app)
        let shop = try #require(await fixture.appear())
        try await fixture.run {
            let changes = fixture.proxy.changeMonitor.changes(of: shop.id, for: fixture.owner)
            try await eventually("the tools are listed") { app.requests.contains { $0.method == "tools/list" } }
            withExtendedLifetime(changes) {}
        }
        #expect(!app.requests.contains { $0.head.hasPrefix("GET") || $0.method == "subscriptions/listen" })
    }

    /// An app with sessions, subscriptions and announced tools, whose GET stream is scripted.
    private static func subscribable(
        tools: @escaping @Sendable () -> JSON = { [] },
        _ stream: @escaping @Sendable (ScriptedApp.Request) -> ScriptedApp.Reply
    ) -> ScriptedApp {
        ScriptedApp { request in
            if request.head.hasPrefix("GET ") { return stream(request) }
            return switch request.method {
            case "initialize":
                .result([
                    "protocolVersion": "2025-11-25", "serverInfo": ["name": "x"],
                    "capabilities": ["resources": ["subscribe": true], "tools": ["listChanged": true]],
                ])
            case "resources/subscribe": .result([:])
            case "tools/list": .result(["tools": tools()])
            case let method where method.hasPrefix("notifications/"): .http(202, [], "")
            default: .error(-32_601, "no")
            }
        }
    }

    /// Waits until a new subscriber has received these changes.
    private static func expect(_ changes: Set<ServerChange>, of handler: AppRequestHandler, for principal: Principal)
        async throws
    {
        var missing = changes
        for await change in handler.changes(for: principal) {
            missing.remove(change)
            if missing.isEmpty { return }
        }
        Issue.record("the stream ended without \(missing)")
    }

    private static func expect(_ change: ServerChange, of handler: AppRequestHandler, _ fixture: AppProxyFixture)
        async throws
    {
        var changes = handler.changes(for: fixture.owner).makeAsyncIterator()
        #expect(await changes.next() == change)
    }
}
