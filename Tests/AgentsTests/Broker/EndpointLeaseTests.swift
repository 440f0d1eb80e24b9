import AccessControl
import Model
import Samples
import TestSupport
import Testing

@testable import Agents
@testable import Apps

/// The argument `lease` of `endpoint_call`, and leases in `endpoint_list`.
@Suite struct EndpointLeaseTests {
    private static let scopes: Set<Scope> = [.registryRead, .endpointCall]
    private let anna = Principal.holder(of: "anna", scopes)
    private let ben = Principal.holder(of: "ben", scopes)

    private static func arguments(_ lease: Int, _ more: JSONObject = [:]) -> JSONObject {
        var arguments: JSONObject = ["endpoint": "shop", "name": "tap", "lease": .number(JSONNumber(lease))]
        for member in more.members { arguments[member.name] = member.value }
        return arguments
    }

    @Test func `a call takes the lease, and a later one ends it`() async throws {
        let fixture = BrokerFixture()
        try await fixture.addEndpoint()

        _ = try await fixture.call("endpoint_call", Self.arguments(60), of: anna)
        #expect(fixture.leases.count == 1)
        _ = try await fixture.call("endpoint_call", Self.arguments(0), of: anna)

        #expect(fixture.leases.count == 0)
        #expect(fixture.apps.calls.count == 2)
    }

    /// An app with listed tools. A call of any other app sleeps once more, while it lists the tools.
    private static func fixtureWithListedApp() async throws -> BrokerFixture {
        let fixture = BrokerFixture()
        let shop = try await fixture.addEndpoint()
        fixture.apps.set(.success(AppToolList(tools: [["name": "tap"]])), of: shop)
        return fixture
    }

    @Test func `a call waits for its turn, and the wait is a part of its timeout`() async throws {
        let fixture = try await Self.fixtureWithListedApp()
        _ = try await fixture.call("endpoint_call", Self.arguments(60), of: anna)
        async let second = fixture.call("endpoint_call", Self.arguments(60, ["timeoutSeconds": 20]), of: ben)
        await fixture.clock.waitForSleepers(1)
        fixture.clock.advance(by: .seconds(5))

        _ = try await fixture.call("endpoint_call", Self.arguments(0), of: anna)

        #expect(try await !second.isError)
        #expect(fixture.apps.calls.last?.timeout == .seconds(15))
    }

    @Test func `after the timeout, a call is refused with the holder`() async throws {
        let fixture = try await Self.fixtureWithListedApp()
        _ = try await fixture.call("endpoint_call", Self.arguments(600), of: anna)
        async let second = fixture.call("endpoint_call", Self.arguments(60, ["timeoutSeconds": 20]), of: ben)
        await fixture.clock.waitForSleepers(1)
        fixture.clock.advance(by: .seconds(20))

        let result = try await second

        #expect(result.isError && result.text.contains("is leased to \"test\" until 2026"))
        #expect(fixture.apps.calls.count == 1)
    }

    @Test func `endpoint_list shows the holder and the end of a lease`() async throws {
        let fixture = BrokerFixture()
        try await fixture.addEndpoint()
        let free = try await fixture.call("endpoint_list", of: ben)
        _ = try await fixture.call("endpoint_call", Self.arguments(60), of: anna)

        let own = try await fixture.call("endpoint_list", of: anna)
        let other = try await fixture.call("endpoint_list", of: ben)

        #expect(free.structure?["endpoints"]?.array?.first?["lease"] == nil)
        #expect(own.structure?["endpoints"]?.array?.first?["lease"]?["holder"] == "you")
        #expect(other.structure?["endpoints"]?.array?.first?["lease"]?["holder"] == "test")
        #expect(own.text.contains("leased by you") && other.text.contains("leased by another client"))
    }

    @Test(arguments: [-1, LeaseSpec.maxSeconds + 1]) func `the length of a lease is checked`(seconds: Int) async throws
    {
        let fixture = BrokerFixture()
        try await fixture.addEndpoint()

        let result = try await fixture.call("endpoint_call", Self.arguments(seconds), of: anna)

        #expect(result.isError && result.text.contains("lease must be a whole number from 0 to 28800"))
        #expect(fixture.apps.calls.isEmpty)
    }
}
