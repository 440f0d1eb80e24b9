import AccessControl
import FoundationEssentials
import Model
import Registry
import Samples
import Synchronization
import Team
import Testing

@testable import Agents
@testable import Apps

/// The list and the resources of the broker in a team.
@Suite(.timeLimit(.minutes(1))) struct TeamListTests {
    private func host(_ name: String) throws -> HostName { try #require(HostName(name)) }

    private let remote: RemoteEndpoints

    init() throws { remote = RemoteEndpoints(besides: "lab1") }

    /// Returns a broker of lab1 with one endpoint, and with the same endpoint of lab2.
    private func team() async throws -> BrokerFixture {
        let fixture = BrokerFixture(remote)
        let id = try await fixture.addEndpoint()
        var remote = try await fixture.registry.endpoint(id)
        remote.routes = remote.routes.map { route in
            var approved = route
            (approved.approval, approved.isSecretHeld) = (.approved, true)
            return approved
        }
        remote.approval = .approved
        self.remote.setHosts([HostStatus(name: try host("lab2"))])
        self.remote.apply([.put(remote, of: try host("lab2"))])
        return fixture
    }

    @Test func `endpoint_list has the host of each endpoint in a team only`() async throws {
        let alone = BrokerFixture()
        try await alone.addEndpoint()
        #expect(try await alone.call("endpoint_list").structure?["endpoints"]?.array?.first?["host"] == nil)

        let endpoints = try #require(try await team().call("endpoint_list").structure?["endpoints"]?.array)

        #expect(endpoints.map { $0["id"]?.string } == ["shop-iphone", "shop-iphone.lab2"])
        #expect(endpoints.map { $0["host"]?.string } == ["lab1", "lab2"])
        #expect(endpoints.map { $0["via"]?.string } == ["network", "network"])
        // The other broker has the token of its app.
        #expect(endpoints.map { $0["auth"]?.string } == ["needed", nil])
    }

    @Test func `an outdated host is marked in text and structure`() async throws {
        let fixture = try await team()
        let time = Date(timeIntervalSince1970: 1_795_000_000)
        remote.setHosts([HostStatus(name: try host("lab2"), staleSince: time)])

        let result = try await fixture.call("endpoint_list")

        let rows = result.structure?["endpoints"]?.array
        #expect(rows?.first?["staleSince"] == nil)
        #expect(rows?.last?["staleSince"]?.string == "2026-11-18T11:06:40.000Z")
        #expect(result.text.contains("may be outdated: the team's registry is unreachable: shop-iphone.lab2"))
    }

    @Test func `a resource of another host's endpoint has the routes of that host`() async throws {
        let fixture = try await team()
        let uri = "patchbay://endpoint/shop-iphone.lab2"
        let read = MCPRequest("resources/read", ["uri": .string(uri)])

        let result = try await fixture.handler.answer(read, of: BrokerFixture.owner)

        let json = try JSON(parsing: result["contents"]?.array?.first?["text"]?.string ?? "")
        #expect(json["host"] == "lab2" && json["routes"] == [])
        #expect(json["hostRoutes"]?.array?.first?["port"] == 4_000)
    }

    @Test func `a text that several hosts match lists the candidates, and a full ID selects one`() async throws {
        let fixture = try await team()

        let several = try await fixture.call("endpoint_tools", ["endpoint": "shop"])
        #expect(several.isError && several.text.contains("shop-iphone, shop-iphone.lab2"))

        for (text, id) in [
            "shop-iphone": "shop-iphone", "shop-iphone.lab1": "shop-iphone", "shop-iphone.lab2": "shop-iphone.lab2",
        ] {
            _ = try await fixture.call("endpoint_tools", ["endpoint": .string(text)])
            #expect(fixture.apps.listed.withLock { $0.last?.text } == id)
        }
    }

    @Test func `a grant for the endpoints of this host sees no other`() async throws {
        let fixture = try await team()
        let id: EndpointID = "shop-iphone"
        let principal = BrokerFixture.grant([.registryRead], on: .endpoints([id]))

        let result = try await fixture.call("endpoint_list", of: principal)

        #expect(result.structure?["endpoints"]?.array?.map { $0["id"]?.string } == ["shop-iphone"])
    }

    @Test func `a client that subscribed to the list hears of an outdated host`() async throws {
        var batch = ChangeCoalescer.Batch()
        #expect(batch.changes(for: BrokerFixture.owner).isEmpty)
        batch.hostsChanged = true
        #expect(batch.changes(for: BrokerFixture.owner) == [.resource("patchbay://endpoints")])
        #expect(batch.changes(for: BrokerFixture.grant([])).isEmpty)
    }

    @Test func `an endpoint of a host that is offline, or that the team does not have, is refused with the reason`()
        async throws
    {
        let fixture = try await team()
        remote.hosts.setMembers([try host("lab1"), try host("lab2"), try host("lab3")])

        for (id, reason) in [
            ("shop.lab3", "the host lab3 of the team is offline; shop.lab3 returns with it"),
            ("shop.lab9", "the team has no host lab9"), ("none.lab2", "\"none.lab2\": the endpoints are "),
        ] {
            let result = try await fixture.call("endpoint_call", ["endpoint": .string(id), "name": "echo"])
            #expect(result.text.contains(reason), "\(result.text)")
        }
    }
}
