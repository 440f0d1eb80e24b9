import Model
import Synchronization
import TestSupport
import Testing

@testable import Apps

/// Notifications of changed tools, and the rate of list requests.
@Suite struct RefreshTests {
    /// An app with tools of these names.
    private static func app(_ names: @escaping @Sendable () -> [String]) -> ScriptedApp {
        let plain = ScriptedApp.appReveal()
        return ScriptedApp { request in
            guard request.method == "tools/list" else { return plain.reply(to: request) }
            return .result(["tools": .array(names().map { ["name": .string($0)] })])
        }
    }

    @Test func `tools listChanged is always announced, regardless of the app`() async throws {
        let fixture = AppProxyFixture(Self.app { ["a"] })
        let shop = try #require(await fixture.appear())

        let description = await AppRequestHandler(shop.id, proxy: fixture.proxy).description(for: fixture.owner)

        #expect(description.info["name"] == "AppReveal")
        #expect(description.has("tools", "listChanged"))
    }

    @Test func `changed tools after a relaunch are notified even if the app announces no changes`() async throws {
        let names = Mutex(["a"])
        let app = Self.app { names.withLock { $0 } }
        let fixture = AppProxyFixture(app)
        let shop = try #require(await fixture.appear())
        try await fixture.run {
            let handler = AppRequestHandler(shop.id, proxy: fixture.proxy)
            _ = try await handler.answer(MCPRequest("tools/list"), of: fixture.owner)
            var changes = handler.changes(for: fixture.owner).makeAsyncIterator()
            try await eventually("the tools are listed for the subscriber") {
                app.requests.count { $0.method == "tools/list" } == 2
            }
            names.withLock { $0 = ["a", "b"] }

            await fixture.appear(port: 6_000)

            #expect(await changes.next() == .tools)
        }
    }

    @Test func `a relaunched app is listed as soon as its new token is stored`() async throws {
        let names = Mutex(["a"])
        let app = Self.app { names.withLock { $0 } }
        app.set(token: "one")
        let fixture = AppProxyFixture(app)
        let shop = try #require(await fixture.appear())
        try fixture.authorizer.set(secret: "one", of: shop.id)
        try await fixture.run {
            let handler = AppRequestHandler(shop.id, proxy: fixture.proxy)
            _ = try await handler.answer(MCPRequest("tools/list"), of: fixture.owner)
            var changes = handler.changes(for: fixture.owner).makeAsyncIterator()
            try await eventually("the tools are listed for the subscriber") {
                app.requests.count { $0.method == "tools/list" } == 2
            }
            names.withLock { $0 = ["a", "b"] }
            app.set(token: "two")
            let before = app.requests.count
            await fixture.appear(port: 6_000)
            try await eventually("the old token is rejected") { app.requests.count > before }

            try fixture.authorizer.set(secret: "two", of: shop.id)

            #expect(await changes.next() == .tools)
        }
    }

    @Test func `an app that announces a change with every list is refreshed at a falling rate`() async throws {
        let changed: JSON = ["jsonrpc": "2.0", "method": "notifications/tools/list_changed"]
        let plain = ScriptedApp.appReveal()
        let count = Mutex(0)
        let app = ScriptedApp { request in
            guard request.method == "tools/list" else { return plain.reply(to: request) }
            let number = count.withLock {
                $0 += 1; return $0
            }
            return .stream([changed], then: ["tools": [["name": .string("tool\(number)")]]])
        }
        let fixture = AppProxyFixture(app)
        let shop = try #require(await fixture.appear())
        try await fixture.run {
            let changes = fixture.proxy.changeMonitor.changes(of: shop.id, for: fixture.owner)
            let notifications = Mutex(0)
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { @Sendable in for await _ in changes { notifications.withLock { $0 += 1 } } }
                try await eventually("the tools are listed") { count.withLock { $0 } > 0 }
                // The test measures the rate over this time.
                try await Task.sleep(for: .milliseconds(2_500))
                group.cancelAll()
            }
            #expect(count.withLock { $0 } <= 4)
            #expect(notifications.withLock { $0 } <= 8)
        }
    }
}
