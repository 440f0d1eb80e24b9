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

    @Test func `an app of the handshake's eras is listened to while somebody wants to hear, and told what about`()
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
        let rig = DeskRig(app)
        let shop = try #require(await rig.appear(kind: .mcp))
        let server = AppMCPServer(shop.id, desk: rig.desk)
        try await rig.run {
            _ = try await server.answer(MCPRequest("resources/subscribe", ["uri": "a:1"]), of: rig.owner)

            try await Self.expect(.resource("a:1"), of: server, rig)
            try await eventually("nobody listens any more") { app.open == 0 }
        }
        #expect(app.requests.filter { $0.method == "resources/subscribe" }.count == 2)
    }

    @Test func `an app of the stateless era is asked with everything that is to be told, and anew when there is more`()
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
        let rig = DeskRig(app)
        let shop = try #require(await rig.appear(kind: .mcp))
        let server = AppMCPServer(shop.id, desk: rig.desk)
        try await rig.run {
            let changes = server.changes(for: rig.owner)
            try await eventually("it is listened to") { app.requests.contains { $0.method == "subscriptions/listen" } }

            _ = try await server.answer(MCPRequest("resources/subscribe", ["uri": "a:1"]), of: rig.owner)

            var iterator = changes.makeAsyncIterator()
            #expect(await iterator.next() == .resource("a:1"))
        }
        #expect(!app.requests.contains { $0.method == "resources/subscribe" })
    }

    @Test func `a stream on which nothing was said for long is opened anew`() async throws {
        let app = ScriptedApp { request in
            if request.head.hasPrefix("GET ") { return .open([]) }
            return request.method == "initialize"
                ? .result([
                    "protocolVersion": "2025-11-25", "serverInfo": ["name": "x"],
                    "capabilities": ["tools": ["listChanged": true]],
                ]) : .error(-32_601, "no")
        }
        let rig = DeskRig(app) { $0.listening = .milliseconds(50) }
        let shop = try #require(await rig.appear(kind: .mcp))
        try await rig.run {
            let changes = AppMCPServer(shop.id, desk: rig.desk).changes(for: rig.owner)

            try await eventually("it is listened to again and again") {
                app.requests.count { $0.head.hasPrefix("GET ") } >= 3
            }
            withExtendedLifetime(changes) {}
        }
    }

    @Test func `an app that tells nothing is left alone`() async throws {
        let app = ScriptedApp.appReveal()
        let rig = DeskRig(app)
        let shop = try #require(await rig.appear())
        try await rig.run {
            let changes = rig.desk.changes(of: shop.id, for: rig.owner)
            try await eventually("its tools are listed") { app.requests.contains { $0.method == "tools/list" } }
            withExtendedLifetime(changes) {}
        }
        #expect(!app.requests.contains { $0.head.hasPrefix("GET") || $0.method == "subscriptions/listen" })
    }

    private static func expect(_ change: ServerChange, of server: AppMCPServer, _ rig: DeskRig) async throws {
        var changes = server.changes(for: rig.owner).makeAsyncIterator()
        #expect(await changes.next() == change)
    }
}
