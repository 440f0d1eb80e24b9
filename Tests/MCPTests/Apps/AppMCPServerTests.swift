import JSON
import Model
import TestSupport
import Synchronization
import Testing

@testable import MCP

@Suite struct AppMCPServerTests {
    private static func names(_ result: JSONObject) -> [String] {
        (result["tools"]?.array ?? []).compactMap { $0["name"]?.string }
    }

    @Test func `the tools of an app that is away are those it had, marked as such, also after a restart of ours`()
        async throws
    {
        let memory = FakeMemory()
        let app = ScriptedApp.appReveal()
        let rig = DeskRig(app, memory: memory)
        let shop = try #require(await rig.appear())
        try await rig.run {
            let live = try await AppMCPServer(shop.id, desk: rig.desk).answer(MCPRequest("tools/list"), of: rig.owner)
            #expect(Self.names(live) == ["get_screen", "tap"])
            #expect(live["_meta"] == nil)
            try await eventually("it is kept") { memory.text(of: shop.id) != nil }
        }

        let second = DeskRig(app, memory: memory)
        await second.appear()
        app.set(isUp: false)
        let server = AppMCPServer(shop.id, desk: second.desk)

        let stale = try await server.answer(MCPRequest("tools/list"), of: second.owner)

        #expect(Self.names(stale) == ["get_screen", "tap"])
        #expect(stale["_meta"] == ["patchbay/stale": true, "patchbay/failure": "away"])
        #expect(await server.description(for: second.owner).info["name"] == "AppReveal")
        let tools = try await second.desk.tools(of: shop, for: second.owner)
        #expect(tools.isStale)
        #expect(await second.desk.toolCount(of: shop) == 2)
    }

    @Test func `an app that lacks only its token is not called away`() async throws {
        let app = ScriptedApp.appReveal()
        let rig = DeskRig(app)
        let shop = try #require(await rig.appear())
        _ = try await rig.desk.tools(of: shop, for: rig.owner)
        app.set(token: "secret")

        let tools = try await rig.desk.tools(of: shop, for: rig.owner)

        #expect(tools.staleness == .needsSecret(shop.id))
        #expect(tools.tools.count == 2)
    }

    @Test func `other tools than before are marked until somebody has looked, and whoever listens is told`()
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
        let rig = DeskRig(app)
        let shop = try #require(await rig.appear())
        try await rig.run {
            let first = try await rig.desk.tools(of: shop, for: rig.owner)
            var changes = rig.desk.changes(of: shop.id, for: rig.owner).makeAsyncIterator()
            tools.withLock { $0 = [["name": "tap"], ["name": "wipe"]] }

            await rig.appear(port: 6_000)
            #expect(await changes.next() == .tools)

            let second = try await rig.desk.tools(of: shop, for: rig.owner)
            let third = try await rig.desk.tools(of: shop, for: rig.owner)
            #expect([first, second, third].map(\.hasChanged) == [false, true, false])
        }
    }

    @Test func `every page of a list is asked for, and they come as one`() async throws {
        let app = ScriptedApp { request in
            switch request.method {
            case "initialize":
                .result(["protocolVersion": "2025-06-18", "capabilities": [:], "serverInfo": ["name": "x"]])
            case "resources/list":
                request.body["params"]?["cursor"] == "2"
                    ? .result(["resources": [["uri": "b:2"]]])
                    : .result(["resources": [["uri": "a:1"]], "nextCursor": "2"])
            default: .error(-32_601, "no")
            }
        }
        let rig = DeskRig(app)
        let shop = try #require(await rig.appear())

        let list = try await AppMCPServer(shop.id, desk: rig.desk).answer(MCPRequest("resources/list"), of: rig.owner)

        #expect(list == ["resources": [["uri": "a:1"], ["uri": "b:2"]]])
    }

    @Test func `the app's own errors are passed on as they are, ours say what to do`() async throws {
        let app = ScriptedApp.appReveal { _ in .error(-32_602, "Unknown tool: x") }
        let rig = DeskRig(app) { $0.wait = .milliseconds(50) }
        let shop = try #require(await rig.appear())
        let server = AppMCPServer(shop.id, desk: rig.desk)

        await #expect(throws: RPCError(-32_602, "Unknown tool: x")) {
            try await server.answer(MCPRequest("tools/call", ["name": "x"]), of: rig.owner)
        }
        await #expect(throws: RPCError(-32_601, "Method not found")) {
            try await server.answer(MCPRequest("resources/read", ["uri": "a:b"]), of: rig.owner)
        }
        await rig.disappear()
        let away = try await server.answer(MCPRequest("tools/call", ["name": "x"]), of: rig.owner)
        #expect(away["isError"] == true)
        do {
            _ = try await server.answer(MCPRequest("prompts/list"), of: rig.owner)
            Issue.record("a list that nobody ever heard")
        } catch {
            #expect(error.code == -32_603)
            #expect(error.data == ["failure": "away"])
        }
    }

    @Test func `an app that was never met and is away has a description all the same`() async throws {
        let rig = DeskRig(ScriptedApp.appReveal())
        let shop = try #require(await rig.appear())
        await rig.disappear()

        let description = await AppMCPServer(shop.id, desk: rig.desk).description(for: rig.owner)

        #expect(description.info["name"] == .string(shop.id.text))
    }
}
