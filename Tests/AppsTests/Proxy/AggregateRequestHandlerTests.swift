import AccessControl
import Model
import Samples
import SystemIO
import TestSupport
import Testing

@testable import Apps

@Suite struct AggregateRequestHandlerTests {
    /// Returns a dialer of apps by their ports.
    private func dialer(_ apps: [UInt16: ScriptedApp]) -> FakeDialer {
        FakeDialer { route in
            guard let app = apps[route.port] else { throw DialError(.refused, "nothing listens on \(route)") }
            return try await app.dial(route)
        }
    }

    private static func names(_ result: JSONObject) -> [String] {
        (result["tools"]?.array ?? []).compactMap { $0["name"]?.string }
    }

    @Test func `all apps' tools are listed by alias, and a broken app does not delay the others`()
        async throws
    {
        let shop = ScriptedApp.appReveal { .result(["content": [["type": "text", "text": $0["name"] ?? .null]]]) }
        let silent = ScriptedApp { _ in .silence }
        let broken = ScriptedApp { _ in .http(500, [], "") }
        let fixture = AppProxyFixture(dialer([1: shop, 2: silent, 3: broken])) {
            $0.aggregatedList = .milliseconds(200)
        }
        await fixture.appear("shop", port: 1)
        await fixture.appear("silent", port: 2)
        await fixture.appear("broken", port: 3)
        await fixture.appear("offline", port: 4)
        let handler = AggregateRequestHandler(proxy: fixture.proxy)

        let list = try await handler.answer(MCPRequest("tools/list"), of: fixture.owner)
        let call = try await handler.answer(MCPRequest("tools/call", ["name": "shop__tap"]), of: fixture.owner)

        #expect(Self.names(list) == ["shop__get_screen", "shop__tap"])
        #expect(call["content"] == [["type": "text", "text": "tap"]])
        await #expect(throws: RPCError.self) {
            try await handler.answer(MCPRequest("tools/call", ["name": "other__tap"]), of: fixture.owner)
        }
        await #expect(throws: RPCError.self) { try await handler.answer(MCPRequest("prompts/list"), of: fixture.owner) }
    }

    @Test func `an offline app stays in the list, and its calls report it as unavailable`() async throws {
        let fixture = AppProxyFixture(ScriptedApp.appReveal()) { $0.wait = .milliseconds(50) }
        await fixture.appear()
        let handler = AggregateRequestHandler(proxy: fixture.proxy)
        let before = try await handler.answer(MCPRequest("tools/list"), of: fixture.owner)
        await fixture.disappear()

        let after = try await handler.answer(MCPRequest("tools/list"), of: fixture.owner)
        let call = try await handler.answer(MCPRequest("tools/call", ["name": "shop__tap"]), of: fixture.owner)

        #expect(after == before)
        #expect(call["_meta"] == ["patchbay/failure": "unavailable"])
    }

    @Test func `the list has exactly one page`() async throws {
        let fixture = AppProxyFixture(ScriptedApp.appReveal())
        let handler = AggregateRequestHandler(proxy: fixture.proxy)

        let first = try await handler.answer(MCPRequest("tools/list", ["cursor": .null]), of: fixture.owner)

        #expect(Self.names(first).isEmpty)
        do {
            _ = try await handler.answer(MCPRequest("tools/list", ["cursor": "made-up"]), of: fixture.owner)
            Issue.record("a second page was returned")
        } catch { #expect(error.code == -32_602) }
    }

    @Test func `a grant lists only the tools of its own apps`() async throws {
        let fixture = AppProxyFixture(ScriptedApp.appReveal())
        let shop = try #require(await fixture.appear("shop"))
        await fixture.appear("bank", port: 6_000)
        let handler = AggregateRequestHandler(proxy: fixture.proxy)
        func principal(_ scopes: Set<Scope>, _ selector: Selector) -> Principal {
            .holder(of: "x", scopes, on: selector)
        }

        let some = principal([.endpointCall], .endpoints([shop.id]))
        #expect(
            Self.names(try await handler.answer(MCPRequest("tools/list"), of: some)) == [
                "shop__get_screen", "shop__tap",
            ]
        )
        await #expect(throws: RPCError.self) {
            try await handler.answer(MCPRequest("tools/call", ["name": "bank__tap"]), of: some)
        }
        let reader = principal([.registryRead], .all)
        #expect(Self.names(try await handler.answer(MCPRequest("tools/list"), of: reader)).isEmpty)
    }
}
