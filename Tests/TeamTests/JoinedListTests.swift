import FoundationEssentials
import Model
import Samples
import Testing

@testable import Registry
@testable import Team

/// The lists of the host lab1: its registry, the endpoints of the other hosts, and all together.
struct Lists: Sendable {
    let registry: EndpointRegistry
    let remote: RemoteEndpoints
    let all: TeamEndpoints

    init(on host: String? = "lab1") throws {
        remote = RemoteEndpoints(besides: try host.map(Values.host))
        registry = EndpointRegistry(hosts: remote.hosts, record: remote.record)
        all = TeamEndpoints(registry, remote)
    }

    /// Adds an endpoint of this host.
    func add(_ app: String, at address: String = "192.168.1.20") async {
        let route = NetworkRoute(
            address: address,
            port: 4_000,
            interface: "eth0",
            machine: SanitizedText("iphone.local")
        )
        await registry.apply(
            .seen(
                Sighting(
                    id: Sighting.ID(source: .bonjour, key: "eth0/4/\(app)/\(address)"),
                    kind: .appreveal,
                    app: SanitizedText("com.example.\(app)"),
                    appIsBundleID: true,
                    name: SanitizedText(app),
                    machine: SanitizedText("iphone.local"),
                    routes: [.network(route)],
                    port: 4_000
                )
            )
        )
    }
}

/// The list of a host that joins and leaves a team.
@Suite struct JoinedListTests {
    @Test func `a host keeps its IDs when it joins and leaves a team, and followers learn each change`() async throws {
        let lists = try Lists(on: nil)
        let lab1 = try Values.host("lab1")
        await lists.add("shop")
        let alone = try #require(await lists.all.endpoints.first)
        let (_, changes) = await lists.all.changes(after: nil)
        var events = changes.makeAsyncIterator()

        await lists.registry.read { [remote = lists.remote] in remote.setOwn(lab1, local: $0) }
        let joined = try #require(await lists.all.endpoints.first)
        #expect(joined.id == alone.id && joined.host?.name == lab1 && alone.host == nil)
        #expect(try await lists.all.endpoint(alone.id.on(lab1)).id == alone.id)
        let first = await events.next()
        #expect(first?.kind == .changed && first?.endpoint.host?.name == lab1)

        await lists.registry.read { [remote = lists.remote] in remote.setOwn(nil, local: $0) }
        #expect(try await lists.all.endpoint(alone.id) == alone)
        // An address with the name of the host stays valid.
        #expect(try await lists.all.endpoint(alone.id.on(lab1)) == alone)
        #expect(try await lists.registry.endpoint(alone.id.on(lab1)).id == alone.id)
        let second = await events.next()
        #expect(second?.kind == .changed && second?.endpoint.host == nil)
        #expect(second?.revision == lists.all.revision)
    }

    @Test func `the endpoints of other hosts end with the team`() async throws {
        let lists = try Lists()
        let lab2 = try Values.host("lab2")
        await lists.add("shop")
        let shop = try #require(await lists.all.endpoints.first)
        lists.remote.setHosts([HostStatus(name: lab2)])
        lists.remote.apply([.put(try await lists.registry.endpoint(shop.id), of: lab2)])
        #expect(await lists.all.endpoints.count == 2)

        await lists.registry.read { [remote = lists.remote] in remote.setOwn(nil, local: $0) }
        #expect(await lists.all.endpoints.map(\.id) == [shop.id] && lists.remote.hosts.others.isEmpty)
        await #expect(throws: RegistryError.noSuchEndpoint(shop.id.on(lab2).text)) {
            try await lists.all.endpoint(shop.id.on(lab2))
        }
    }
}
