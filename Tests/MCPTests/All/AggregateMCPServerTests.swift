import JSON
import Model
import TestSupport
import SystemIO
import Testing

@testable import MCP

@Suite struct AggregateMCPServerTests {
    /// Each app by its port; one of them never answers.
    private struct Apps: Dialer {
        let apps: [UInt16: ScriptedApp]

        func dial(_ route: Route) async throws -> Connection {
            guard let app = apps[route.port] else { throw DialError(.refused, "nothing listens on \(route)") }
            return try await app.dial(route)
        }
    }

    private static func names(_ result: JSONObject) -> [String] {
        (result["tools"]?.array ?? []).compactMap { $0["name"]?.string }
    }

    @Test func `every app's tools are listed under its alias, and one that hangs or is broken holds up nobody`()
        async throws
    {
        let shop = ScriptedApp.appReveal { .result(["content": [["type": "text", "text": $0["name"] ?? .null]]]) }
        let hung = ScriptedApp { _ in .silence }
        let broken = ScriptedApp { _ in .http(500, [], "") }
        let rig = DeskRig(Apps(apps: [1: shop, 2: hung, 3: broken])) { $0.oneOfAll = .milliseconds(200) }
        await rig.appear("shop", port: 1)
        await rig.appear("hung", port: 2)
        await rig.appear("broken", port: 3)
        await rig.appear("gone", port: 4)
        let server = AggregateMCPServer(desk: rig.desk)

        let list = try await server.answer(MCPRequest("tools/list"), of: rig.owner)
        let call = try await server.answer(MCPRequest("tools/call", ["name": "shop__tap"]), of: rig.owner)

        #expect(Self.names(list) == ["shop__get_screen", "shop__tap"])
        #expect(call["content"] == [["type": "text", "text": "tap"]])
        await #expect(throws: RPCError.self) {
            try await server.answer(MCPRequest("tools/call", ["name": "other__tap"]), of: rig.owner)
        }
        await #expect(throws: RPCError.self) { try await server.answer(MCPRequest("prompts/list"), of: rig.owner) }
    }

    @Test func `an app that goes keeps its place in the list, and its calls say that it is away`() async throws {
        let rig = DeskRig(ScriptedApp.appReveal()) { $0.wait = .milliseconds(50) }
        await rig.appear()
        let server = AggregateMCPServer(desk: rig.desk)
        let before = try await server.answer(MCPRequest("tools/list"), of: rig.owner)
        await rig.disappear()

        let after = try await server.answer(MCPRequest("tools/list"), of: rig.owner)
        let call = try await server.answer(MCPRequest("tools/call", ["name": "shop__tap"]), of: rig.owner)

        #expect(after == before)
        #expect(call["_meta"] == ["patchbay/failure": "away"])
    }

    @Test func `the list has one page, and no other`() async throws {
        let rig = DeskRig(ScriptedApp.appReveal())
        let server = AggregateMCPServer(desk: rig.desk)

        let first = try await server.answer(MCPRequest("tools/list", ["cursor": .null]), of: rig.owner)

        #expect(Self.names(first).isEmpty)
        do {
            _ = try await server.answer(MCPRequest("tools/list", ["cursor": "made-up"]), of: rig.owner)
            Issue.record("another page was given")
        } catch { #expect(error.code == -32_602) }
    }

    @Test func `a grant sees the tools of its own apps and of no other`() async throws {
        let rig = DeskRig(ScriptedApp.appReveal())
        let shop = try #require(await rig.appear("shop"))
        await rig.appear("bank", port: 6_000)
        let server = AggregateMCPServer(desk: rig.desk)
        func caller(_ scopes: Set<Scope>, _ selector: Selector) -> AgentCaller {
            AgentCaller(.grant("x"), permissions: Permissions(scopes, on: selector))
        }

        let some = caller([.endpointCall], .endpoints([shop.id]))
        #expect(
            Self.names(try await server.answer(MCPRequest("tools/list"), of: some)) == [
                "shop__get_screen", "shop__tap",
            ]
        )
        await #expect(throws: RPCError.self) {
            try await server.answer(MCPRequest("tools/call", ["name": "bank__tap"]), of: some)
        }
        let reader = caller([.registryRead], .all)
        #expect(Self.names(try await server.answer(MCPRequest("tools/list"), of: reader)).isEmpty)
    }
}
