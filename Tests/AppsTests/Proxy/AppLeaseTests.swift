import AccessControl
import Model
import Samples
import TestSupport
import Testing

@testable import Apps

/// Calls of apps under leases.
@Suite struct AppLeaseTests {
    private static let scopes: Set<Scope> = [.registryRead, .endpointCall]
    private let anna = Principal.holder(of: "anna", scopes)
    private let ben = Principal.holder(of: "ben", scopes)

    @Test func `a changing call of another client is refused with holder and end, and is not sent`() async throws {
        let app = ScriptedApp.appReveal()
        let fixture = AppProxyFixture(app)
        let shop = try #require(await fixture.appear())
        _ = try await fixture.leases.take(shop, for: anna, seconds: 60)

        let refused = await fixture.call(ToolCall("tap_element", of: shop), of: ben)
        let own = await fixture.call(ToolCall("tap_element", of: shop), of: anna)

        #expect(refused.isError && refused["_meta"]?["patchbay/failure"] == "leased")
        #expect(refused.text.contains("the call was not sent: \(shop.id) is leased to \"test\" until 20"))
        #expect(refused.text.contains("pass lease and timeoutSeconds"))
        #expect(!own.isError)
        #expect(app.calls.count == 1)
        #expect(fixture.authorizer.events.map(\.outcome) == ["leased", "answered"])
    }

    @Test func `a client of another host reads the ID with the host of the endpoint`() async throws {
        let fixture = AppProxyFixture(ScriptedApp.appReveal())
        let shop = try #require(await fixture.appear())
        _ = try await fixture.leases.take(shop, for: anna, seconds: 60)
        let lab1: HostName = "lab1"
        let caller = TeamCaller(
            holder: "uid:0",
            name: SanitizedText("user 0"),
            isAgent: false,
            permissions: Permissions(Self.scopes, on: .all)
        )
        let member = Principal(
            .member(MemberClient(host: lab1, caller: caller)),
            source: .remote(address: "10.0.0.1"),
            actor: .member(host: lab1, client: caller.name),
            host: HostName("lab3")
        )

        let refused = await fixture.call(ToolCall("tap_element", of: shop), of: member)

        #expect(refused.text.contains("\(shop.id).lab3 is leased to"), "\(refused.text)")
    }

    @Test(arguments: [
        (AppError.Audience.brokerAgent, "pass lease and timeoutSeconds"), (.appAgent, "call again later"),
        (.human, "patchbay lease shop.lab3"),
    ])
    func `the hint of a lease at another host depends on the reader`(audience: AppError.Audience, hint: String) throws {
        let problem = Problem(.leased, "shop.lab3 is leased", hint: "patchbay lease shop.lab3 --wait 5m")
        let error = AppError.refused(by: "lab3", problem)

        #expect(error.hint(for: audience, at: "shop.lab3").contains(hint))
    }

    @Test func `read-only calls, lists and resources of other clients pass`() async throws {
        let app = ScriptedApp.appReveal()
        let fixture = AppProxyFixture(app)
        let shop = try #require(await fixture.appear())
        _ = try await fixture.leases.take(shop, for: anna, seconds: 60)

        let shot = await fixture.call(ToolCall("screenshot", of: shop), of: ben)

        #expect(!shot.isError)
        await #expect(throws: Never.self) { try await fixture.proxy.tools(of: shop, for: ben) }
    }

    @Test func `the same rule holds at the app's own server and at the server of all apps`() async throws {
        let app = ScriptedApp.appReveal()
        let fixture = AppProxyFixture(app)
        let shop = try #require(await fixture.appear())
        _ = try await fixture.leases.take(shop, for: anna, seconds: 60)
        let name = ToolNamespace.name(of: "tap_element", alias: ToolNamespace.alias(of: shop.id))

        let handlers: [(any MCPRequestHandler, String)] = [
            (AppRequestHandler(shop.id, proxy: fixture.proxy), "tap_element"),
            (AggregateRequestHandler(proxy: fixture.proxy), name),
        ]
        for (handler, tool) in handlers {
            let result = try await handler.answer(MCPRequest("tools/call", ["name": .string(tool)]), of: ben)
            #expect(result["_meta"]?["patchbay/failure"] == "leased")
        }
        #expect(app.calls.isEmpty)
    }

    @Test func `the next client gets the lease after the running call of the former holder`() async throws {
        let (began, begin) = AsyncStream.makeStream(of: Void.self)
        let app = ScriptedApp.appReveal { _ in
            begin.yield()
            return .silence
        }
        let fixture = AppProxyFixture(app)
        let shop = try #require(await fixture.appear())
        let lease = try await fixture.leases.take(shop, for: anna, seconds: 60)
        let call = Task { [anna] in await fixture.call(ToolCall("tap_element", of: shop), of: anna) }
        for await _ in began { break }

        try fixture.leases.end(lease.id, among: [], by: anna)
        let error = await #expect(throws: AccessError.self) {
            try await fixture.leases.take(shop, for: ben, seconds: 60)
        }
        async let next = fixture.leases.take(shop, for: ben, seconds: 60, wait: .seconds(50))
        call.cancel()

        #expect(error?.description == "a changing call of another client still runs on \(shop.id)")
        #expect(try await next.isOwn)
        _ = await call.value
    }
}
