import JSON
import Model
import TestSupport
import Synchronization
import Testing

@testable import MCP

/// Hearing of other tools, and how often an app is asked for them.
@Suite struct RefreshTests {
    /// Its tools have the names that it is told.
    private static func app(_ names: @escaping @Sendable () -> [String]) -> ScriptedApp {
        let plain = ScriptedApp.appReveal()
        return ScriptedApp { request in
            guard request.method == "tools/list" else { return plain.reply(to: request) }
            return .result(["tools": .array(names().map { ["name": .string($0)] })])
        }
    }

    @Test func `the broker says that it tells of other tools, whatever the app says`() async throws {
        let rig = DeskRig(Self.app { ["a"] })
        let shop = try #require(await rig.appear())

        let description = await AppMCPServer(shop.id, desk: rig.desk).description(for: rig.owner)

        #expect(description.info["name"] == "AppReveal")
        #expect(description.has("tools", "listChanged"))
    }

    @Test func `a relaunched app with other tools is news, though it never said that it would tell`() async throws {
        let names = Mutex(["a"])
        let app = Self.app { names.withLock { $0 } }
        let rig = DeskRig(app)
        let shop = try #require(await rig.appear())
        try await rig.run {
            let server = AppMCPServer(shop.id, desk: rig.desk)
            _ = try await server.answer(MCPRequest("tools/list"), of: rig.owner)
            var changes = server.changes(for: rig.owner).makeAsyncIterator()
            try await eventually("it is listed for the listener") {
                app.requests.count { $0.method == "tools/list" } == 2
            }
            names.withLock { $0 = ["a", "b"] }

            await rig.appear(port: 6_000)

            #expect(await changes.next() == .tools)
        }
    }

    @Test func `a relaunched app that wants its new token first is listed as soon as it has it`() async throws {
        let names = Mutex(["a"])
        let app = Self.app { names.withLock { $0 } }
        app.set(token: "one")
        let rig = DeskRig(app)
        let shop = try #require(await rig.appear())
        try rig.trust.set(secret: "one", of: shop.id)
        try await rig.run {
            let server = AppMCPServer(shop.id, desk: rig.desk)
            _ = try await server.answer(MCPRequest("tools/list"), of: rig.owner)
            var changes = server.changes(for: rig.owner).makeAsyncIterator()
            try await eventually("it is listed for the listener") {
                app.requests.count { $0.method == "tools/list" } == 2
            }
            names.withLock { $0 = ["a", "b"] }
            app.set(token: "two")
            let before = app.requests.count
            await rig.appear(port: 6_000)
            try await eventually("the old token is refused") { app.requests.count > before }

            try rig.trust.set(secret: "two", of: shop.id)

            #expect(await changes.next() == .tools)
        }
    }

    @Test func `an app that announces a change with each list is asked a few times and then seldom`() async throws {
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
        let rig = DeskRig(app)
        let shop = try #require(await rig.appear())
        try await rig.run {
            let changes = rig.desk.changes(of: shop.id, for: rig.owner)
            let told = Mutex(0)
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { @Sendable in for await _ in changes { told.withLock { $0 += 1 } } }
                try await eventually("it is listed") { count.withLock { $0 } > 0 }
                // The rate is what is measured.
                try await Task.sleep(for: .milliseconds(2_500))
                group.cancelAll()
            }
            #expect(count.withLock { $0 } <= 4)
            #expect(told.withLock { $0 } <= 8)
        }
    }
}
