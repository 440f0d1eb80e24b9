import JSON
import Model
import TestSupport
import Synchronization
import Testing

@testable import MCP

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
        let server = AppMCPServer(shop.id, proxy: fixture.proxy)
        try await fixture.run {
            _ = try await server.answer(MCPRequest("resources/subscribe", ["uri": "a:1"]), of: fixture.owner)

            try await Self.expect(.resource("a:1"), of: server, fixture)
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
        let server = AppMCPServer(shop.id, proxy: fixture.proxy)
        try await fixture.run {
            let changes = server.changes(for: fixture.owner)
            try await eventually("the change stream is open") {
                app.requests.contains { $0.method == "subscriptions/listen" }
            }

            _ = try await server.answer(MCPRequest("resources/subscribe", ["uri": "a:1"]), of: fixture.owner)

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
            let changes = AppMCPServer(shop.id, proxy: fixture.proxy).changes(for: fixture.owner)

            try await eventually("the change stream is opened again") {
                app.requests.count { $0.head.hasPrefix("GET ") } >= 3
            }
            withExtendedLifetime(changes) {}
        }
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

    private static func expect(_ change: ServerChange, of server: AppMCPServer, _ fixture: AppProxyFixture) async throws
    {
        var changes = server.changes(for: fixture.owner).makeAsyncIterator()
        #expect(await changes.next() == change)
    }
}
