import Model
import Synchronization
import TestSupport
import Testing

@testable import Apps

@Suite struct AppRequestHandlerTests {
    private static func names(_ result: JSONObject) -> [String] {
        (result["tools"]?.array ?? []).compactMap { $0["name"]?.string }
    }

    @Test func `an offline app has its cached tools, marked as stale, also after a restart of Patchbay`()
        async throws
    {
        let storage = FakeCacheStorage()
        let app = ScriptedApp.appReveal()
        let fixture = AppProxyFixture(app, storage: storage)
        let shop = try #require(await fixture.appear())
        try await fixture.run {
            let live = try await AppRequestHandler(shop.id, proxy: fixture.proxy).answer(
                MCPRequest("tools/list"),
                of: fixture.owner
            )
            #expect(Self.names(live) == ["get_screen", "tap"])
            #expect(live["_meta"] == nil)
            try await eventually("the list is stored") { storage.text(of: shop.id) != nil }
        }

        let second = AppProxyFixture(app, storage: storage)
        await second.appear()
        app.set(isUp: false)
        let handler = AppRequestHandler(shop.id, proxy: second.proxy)

        let stale = try await handler.answer(MCPRequest("tools/list"), of: second.owner)

        #expect(Self.names(stale) == ["get_screen", "tap"])
        #expect(stale["_meta"] == ["patchbay/stale": true, "patchbay/failure": "unavailable"])
        #expect(await handler.description(for: second.owner).info["name"] == "AppReveal")
        let tools = try await second.proxy.tools(of: shop, for: second.owner)
        #expect(tools.isStale)
        #expect(await second.proxy.toolCount(of: shop) == 2)
    }

    @Test func `an app that requires a token is not reported as unavailable`() async throws {
        let app = ScriptedApp.appReveal()
        let fixture = AppProxyFixture(app)
        let shop = try #require(await fixture.appear())
        _ = try await fixture.proxy.tools(of: shop, for: fixture.owner)
        app.set(token: "secret")

        let tools = try await fixture.proxy.tools(of: shop, for: fixture.owner)

        #expect(tools.staleness == .tokenRequired(.missing))
        #expect(tools.tools.count == 2)
    }

    @Test func `changed tools are marked until a client fetches them, and subscribers are notified`()
        async throws
    {
        let tools = Mutex<JSON>([["name": "tap"]])
        let app = ScriptedApp { request in
            switch request.method {
            case "initialize":
                .result(["protocolVersion": "2025-06-18", "capabilities": [:], "serverInfo": ["name": "x"]])
            case "tools/list": .result(["tools": tools.withLock { $0 }])
            default: .error(-32_601, "no")
            }
        }
        let fixture = AppProxyFixture(app)
        let shop = try #require(await fixture.appear())
        try await fixture.run {
            let first = try await fixture.proxy.tools(of: shop, for: fixture.owner)
            var changes = fixture.proxy.changeMonitor.changes(of: shop.id, for: fixture.owner).makeAsyncIterator()
            tools.withLock { $0 = [["name": "tap"], ["name": "wipe"]] }

            await fixture.appear(port: 6_000)
            #expect(await changes.next() == .tools)

            let second = try await fixture.proxy.tools(of: shop, for: fixture.owner)
            let third = try await fixture.proxy.tools(of: shop, for: fixture.owner)
            #expect([first, second, third].map(\.hasChanged) == [false, true, false])
        }
    }

    @Test func `all pages of a list are requested and merged`() async throws {
        let app = ScriptedApp { request in
            switch request.method {
            case "initialize":
                .result(["protocolVersion": "2025-06-18", "capabilities": [:], "serverInfo": ["name": "x"]])
            case "resources/list":
                request.body["params"]?["cursor"] == "2"
                    ? .result(["resources": [["uri": "b:2", "name": "b"]]])
                    : .result(["resources": [["uri": "a:1"]], "nextCursor": "2"])
            default: .error(-32_601, "no")
            }
        }
        let fixture = AppProxyFixture(app)
        let shop = try #require(await fixture.appear())

        let list = try await AppRequestHandler(shop.id, proxy: fixture.proxy).answer(
            MCPRequest("resources/list"),
            of: fixture.owner
        )

        // A missing name is completed, because the SDKs require one.
        #expect(list == ["resources": [["uri": "a:1", "name": "a:1"], ["uri": "b:2", "name": "b"]]])
    }

    @Test func `the app's own errors are passed on unchanged, and errors of Patchbay have a hint`() async throws {
        let app = ScriptedApp.appReveal { _ in .error(-32_602, "Unknown tool: x") }
        let fixture = AppProxyFixture(app) { $0.wait = .milliseconds(50) }
        let shop = try #require(await fixture.appear())
        let handler = AppRequestHandler(shop.id, proxy: fixture.proxy)

        await #expect(throws: RPCError(-32_602, "Unknown tool: x")) {
            try await handler.answer(MCPRequest("tools/call", ["name": "x"]), of: fixture.owner)
        }
        await #expect(throws: RPCError(-32_601, "Method not found")) {
            try await handler.answer(MCPRequest("resources/read", ["uri": "a:b"]), of: fixture.owner)
        }
        await fixture.disappear()
        let away = try await handler.answer(MCPRequest("tools/call", ["name": "x"]), of: fixture.owner)
        #expect(away["isError"] == true)
        do {
            _ = try await handler.answer(MCPRequest("prompts/list"), of: fixture.owner)
            Issue.record("a list without a cached value was returned")
        } catch {
            #expect(error.code == -32_603)
            #expect(error.data == ["failure": "unavailable"])
        }
    }

    @Test func `an offline app without a cached description has a default description`() async throws {
        let fixture = AppProxyFixture(ScriptedApp.appReveal())
        let shop = try #require(await fixture.appear())
        await fixture.disappear()

        let description = await AppRequestHandler(shop.id, proxy: fixture.proxy).description(for: fixture.owner)

        #expect(description.info["name"] == .string(shop.id.text))
    }
}
