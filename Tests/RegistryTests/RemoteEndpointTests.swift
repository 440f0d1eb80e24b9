import FoundationEssentials
import Model
import Testing

@testable import Registry

/// The endpoints of the other hosts of a team.
@Suite struct RemoteEndpointTests {
    private static let lab1 = host("lab1")
    private static let lab2 = host("lab2")
    private static let lab3 = host("lab3")

    private static func host(_ name: String) -> HostName {
        guard let host = HostName(name) else { preconditionFailure("\(name) is no host") }
        return host
    }

    private static func id(_ text: String) -> EndpointID {
        guard let id = EndpointID(text) else { preconditionFailure("\(text) is no ID") }
        return id
    }

    /// An endpoint as the broker of its host publishes it.
    private static func endpoint(
        _ id: String,
        state: Endpoint.State = .online,
        approval: Endpoint.Approval = .approved
    ) -> Endpoint {
        Endpoint(
            id: Self.id(id),
            kind: .appreveal,
            app: SanitizedText("com.example.shop"),
            name: SanitizedText("Shop"),
            state: state,
            approval: approval,
            routes: [EndpointRoute(.network(NetworkRoute(address: "192.168.1.20", port: 4_000)))],
            sources: [.bonjour],
            firstSeenAt: Date(timeIntervalSince1970: 0),
            lastSeenAt: nil
        )
    }

    /// A registry of the host lab1 with one local endpoint, `shop-iphone`.
    private static func registry() async -> EndpointRegistry {
        let registry = EndpointRegistry()
        await registry.setOwnHost(lab1)
        await registry.apply(.seen(Seen.network()))
        return registry
    }

    @Test func `the endpoints of all hosts are listed in the order of their IDs`() async throws {
        let registry = await Self.registry()
        await registry.apply([
            .put(Self.endpoint("till"), of: Self.lab2), .put(Self.endpoint("shop-iphone"), of: Self.lab3),
            .put(Self.endpoint("shop-iphone"), of: Self.lab2),
        ])

        let ids = await registry.endpoints.map(\.id.text)

        #expect(ids == ["shop-iphone", "shop-iphone.lab2", "shop-iphone.lab3", "till.lab2"])
        #expect(await registry.list.endpoints.map(\.id.text) == ids)
        #expect(try await registry.endpoint(Self.id("shop-iphone.lab2")).host?.name == Self.lab2)
        #expect(try await registry.endpoint(Self.id("shop-iphone.lab1")).id.text == "shop-iphone")
        await registry.setHosts([HostStatus(name: Self.lab2)])
        await #expect(throws: RegistryError.noSuchEndpoint("mail.lab2")) {
            try await registry.endpoint(Self.id("mail.lab2"))
        }
    }

    @Test func `a remote endpoint keeps the approval of its owner and has no route of this broker`() async throws {
        let registry = await Self.registry()
        await registry.apply([.put(Self.endpoint("till", approval: .changed), of: Self.lab2)])
        let id = Self.id("till.lab2")

        await registry.setTrust(.none, of: id)
        await registry.report(DialError(.refused, "refused"), of: id)
        await registry.acceptServer(of: id)

        let endpoint = try await registry.endpoint(id)
        #expect(endpoint.approval == .changed && endpoint.state == .online)
        #expect(endpoint.routes.isEmpty && endpoint.hostRoutes?.count == 1)
    }

    @Test func `each change of a remote endpoint has a revision and an event`() async {
        let registry = await Self.registry()
        let (_, changes) = await registry.changes()
        let before = await registry.revision

        await registry.apply([.put(Self.endpoint("till"), of: Self.lab2)])
        await registry.apply([.put(Self.endpoint("till"), of: Self.lab2)])
        await registry.apply([.put(Self.endpoint("till", state: .offline), of: Self.lab2)])
        await registry.apply([.remove(Self.id("till"), of: Self.lab2), .remove(Self.id("till"), of: Self.lab2)])
        let (start, _) = await registry.changes(after: before + 1)
        await registry.finish()

        let seen = await changes.reduce(into: []) { $0.append($1) }
        #expect(seen.map(\.kind) == [.added, .changed, .removed])
        #expect(seen.map(\.revision) == [before + 1, before + 2, before + 3])
        guard case .replay(let missed) = start else {
            Issue.record("the last two changes are still kept")
            return
        }
        #expect(missed == Array(seen.dropFirst()))
    }

    @Test func `the state of this host wins, so what the team's registry says about it is ignored`() async throws {
        let registry = await Self.registry()
        let local = try await registry.endpoint(Self.id("shop-iphone"))

        await registry.apply([
            .put(Self.endpoint("shop-iphone", state: .blocked), of: Self.lab1), .removeAll(of: Self.lab1),
        ])

        #expect(await registry.endpoints == [local])
    }

    @Test func `no local part sees a remote endpoint`() async throws {
        let registry = await Self.registry()
        let (endpoints, changes) = await registry.localChanges()
        let revision = await registry.localRevision

        await registry.apply([.put(Self.endpoint("till"), of: Self.lab2)])

        #expect(await registry.localList(ifChangedSince: revision) == nil)
        #expect(await registry.localEndpoints == endpoints && endpoints.map(\.id.text) == ["shop-iphone"])
        #expect(await registry.records.map(\.endpoint.id.text) == ["shop-iphone"])
        let error = RegistryError.onOtherHost(Self.id("till.lab2"), Self.lab2)
        await #expect(throws: error) { try await registry.localEndpoint(Self.id("till.lab2")) }
        #expect(try await registry.localEndpoint(Self.id("shop-iphone.lab1")).id.text == "shop-iphone")

        await registry.apply(.seen(Seen.network("com.example.mail")))
        await registry.finish()
        #expect(await changes.reduce(into: []) { $0.append($1.endpoint.id.text) } == ["mail-iphone"])
    }

    @Test func `a stored remote endpoint is not loaded`() async {
        let stored = PersistedEndpoint(endpoint: Self.endpoint("till").on(Self.lab2), source: .bonjour, keys: [])

        let registry = EndpointRegistry(records: [stored])

        #expect(await registry.endpoints.isEmpty)
        #expect(await registry.records.isEmpty)
    }

    @Test func `a remote endpoint is removed on its host only`() async throws {
        let registry = await Self.registry()
        await registry.apply([.put(Self.endpoint("till", state: .offline), of: Self.lab2)])
        let id = Self.id("till.lab2")

        let error = await #expect(throws: RegistryError.self) { try await registry.remove(id) }

        #expect(error == .onOtherHost(id, Self.lab2))
        #expect(error?.description == "till.lab2 belongs to the host lab2; run the command there")
        #expect(try await registry.endpoint(id).id == id)
    }

    /// Changes as text, such as `added shop.lab2`.
    private static func text(_ changes: [EndpointTable.Change]) -> [String] {
        changes.map { "\($0.kind) \($0.endpoint.id)" }
    }

    @Test func `above the limit, endpoints are counted, and listed as soon as there is room`() {
        var table = RemoteEndpointTable(limit: 3)
        for name in ["a", "b", "c"] { _ = table.apply(.put(Self.endpoint(name), of: Self.lab2)) }
        for name in ["a", "b", "c"] { #expect(table.apply(.put(Self.endpoint(name), of: Self.lab3)).isEmpty) }

        #expect(table.count == 3)
        #expect(table.refusals.count == 3 && table.refusals.hosts == [Self.lab3])
        // Each endpoint may change, and be removed, also while it waits.
        #expect(Self.text(table.apply(.put(Self.endpoint("a", state: .offline), of: Self.lab2))) == ["changed a.lab2"])
        #expect(table.apply(.put(Self.endpoint("b", state: .offline), of: Self.lab3)).isEmpty)
        #expect(table.apply(.remove(Self.id("c"), of: Self.lab3)).isEmpty)
        #expect(table.refusals.count == 2)

        #expect(
            Self.text(table.apply(.remove(Self.id("a"), of: Self.lab2))) == ["removed a.lab2", "added a.lab3"]
        )
        #expect(
            Self.text(table.apply(.removeAll(of: Self.lab2))) == ["removed b.lab2", "removed c.lab2", "added b.lab3"]
        )
        #expect(table[Self.id("b.lab3")]?.state == .offline)
        #expect(table.refusals.isEmpty && table.count == 2)
    }

    @Test func `the endpoints of a host that is gone do not wait for room`() {
        var table = RemoteEndpointTable(limit: 1)
        _ = table.apply(.put(Self.endpoint("a"), of: Self.lab2))
        _ = table.apply(.put(Self.endpoint("a"), of: Self.lab3))

        #expect(table.apply(.removeAll(of: Self.lab3)).isEmpty)
        #expect(table.refusals.isEmpty)
        #expect(Self.text(table.apply(.removeAll(of: Self.lab2))) == ["removed a.lab2"])
    }

    @Test func `remote endpoints take no place of local ones`() async {
        let registry = await Self.registry()
        await registry.apply((0..<5_000).map { RemoteEndpointChange.put(Self.endpoint("e\($0)"), of: Self.lab2) })

        await registry.apply(.seen(Seen.network("com.example.mail", host: "mac.local", address: "192.168.1.30")))

        #expect(await registry.endpoints.count == 5_000 + 2)
        #expect(await registry.remoteRefusals.isEmpty)
        #expect(await registry.refusals.isEmpty)
    }

    @Test func `an endpoint is found by the ID that it had before on its host`() async throws {
        let registry = await Self.registry()
        var endpoint = Self.endpoint("till")
        endpoint.formerIDs = [Self.id("tcp-80")]
        await registry.apply([.put(endpoint, of: Self.lab2)])

        #expect(try await registry.endpoint(Self.id("tcp-80.lab2")).id.text == "till.lab2")
    }
}

/// Entries that may be outdated, because the team's registry is unreachable.
@Suite struct StaleHostTests {
    private static let date = Date(timeIntervalSince1970: 1_795_000_000)

    private func host(_ name: String) throws -> HostName { try #require(HostName(name)) }

    private func registry(_ count: Int = 1) async throws -> EndpointRegistry {
        let registry = EndpointRegistry()
        await registry.setOwnHost(try host("lab1"))
        await registry.setHosts([HostStatus(name: try host("lab2"))])
        let template = try #require(EndpointID("e"))
        let endpoints = (0..<count).compactMap { EndpointID("\(template)\($0)") }.map { id in
            Endpoint(
                id: id,
                kind: .tcp,
                app: SanitizedText("app"),
                name: SanitizedText("app"),
                state: .online,
                approval: .approved,
                firstSeenAt: Self.date,
                lastSeenAt: nil
            )
        }
        let lab2 = try host("lab2")
        await registry.apply(endpoints.map { RemoteEndpointChange.put($0, of: lab2) })
        return registry
    }

    /// Marks the entries of lab2 as outdated since a time; nil marks them as current.
    private func setStale(since time: Date?, _ registry: EndpointRegistry) async throws {
        await registry.setHosts([HostStatus(name: try host("lab2"), staleSince: time)])
    }

    @Test func `every entry of a host is outdated and current again with one event of the hosts`() async throws {
        let registry = try await registry(1_000)
        let (_, changes) = await registry.changes()
        var hosts = registry.teamHosts.lists().makeAsyncIterator()
        #expect(await hosts.next()?.map(\.staleSince) == [nil])
        let revision = await registry.revision

        try await setStale(since: Self.date, registry)

        #expect(await hosts.next()?.map(\.staleSince) == [Self.date])
        #expect(await registry.revision == revision + 1)
        #expect(await registry.endpoints.allSatisfy { $0.host?.staleSince == Self.date && $0.state == .online })
        let id = try #require(EndpointID("e7.lab2"))
        #expect(try await registry.endpoint(id).host?.staleSince == Self.date)

        try await setStale(since: nil, registry)

        #expect(await hosts.next()?.map(\.staleSince) == [nil])
        #expect(await registry.endpoints.allSatisfy { $0.host?.staleSince == nil })
        await registry.finish()
        #expect(await changes.reduce(into: 0) { count, _ in count += 1 } == 0)
    }

    @Test func `a client that waits for a revision after a stale mark gets no wrong replay`() async throws {
        let registry = try await registry()
        let revision = await registry.revision
        try await setStale(since: Self.date, registry)
        await registry.apply([.removeAll(of: try host("lab2"))])

        let (start, _) = await registry.changes(after: revision)

        guard case .replay(let missed) = start else {
            Issue.record("the change is still kept")
            return
        }
        #expect(missed.map(\.revision) == [revision + 2] && missed.map(\.kind) == [.removed])
        #expect(await registry.lastChangeRevision == revision + 2)
    }

    @Test func `an event of an outdated host says so`() async throws {
        let registry = try await registry()
        try await setStale(since: Self.date, registry)
        let (_, changes) = await registry.changes()
        await registry.apply([.removeAll(of: try host("lab2"))])
        await registry.finish()

        #expect(await changes.reduce(into: []) { $0.append($1.endpoint.host?.staleSince) } == [Self.date])
    }

    @Test func `this host is not in the list of the others`() async throws {
        let registry = try await registry()

        await registry.setHosts([HostStatus(name: try host("lab3")), HostStatus(name: try host("lab1"))])

        #expect(registry.teamHosts.others.map(\.name.text) == ["lab3"])
    }

    @Test func `leaving the team removes the endpoints and the hosts`() async throws {
        let registry = try await registry()

        await registry.setOwnHost(nil)

        #expect(await registry.endpoints.isEmpty && registry.teamHosts.others.isEmpty)
        #expect(registry.teamHosts.own == nil)
    }

    @Test func `only in a team, a client sees the host of each endpoint`() async throws {
        let registry = try await registry()
        await registry.apply(.seen(Seen.config("till")))

        let listed = registry.teamHosts.withHosts(await registry.endpoints)
        #expect(listed.map(\.host?.name.text) == ["lab2", "lab1"])

        await registry.setOwnHost(nil)
        #expect(registry.teamHosts.withHosts(await registry.endpoints).map(\.host) == [nil])
    }

    @Test func `a missing endpoint of another host has the state of the host as reason`() async throws {
        let registry = try await registry()
        func reason(_ id: String) async throws -> RegistryError? {
            let id = try #require(EndpointID(id))
            return await #expect(throws: RegistryError.self) { try await registry.endpoint(id) }
        }
        let (lab3, lab9) = (try host("lab3"), try host("lab9"))
        let shop = try #require(EndpointID("shop.lab3"))

        #expect(try await reason("shop.lab3") == .hostNotKnown(lab3))
        #expect(!registry.teamHosts.lacks(lab9))
        await registry.setMembers([try host("lab1"), try host("lab2"), lab3])

        #expect(try await reason("shop.lab3") == .hostOffline(shop, lab3))
        #expect(try await reason("shop.lab9") == .noSuchHost(lab9))
        #expect(try await reason("shop.lab2") == .noSuchEndpoint("shop.lab2"))
        #expect(try await reason("shop.lab1") == .noSuchEndpoint("shop"))
        #expect(registry.teamHosts.lacks(lab9) && !registry.teamHosts.lacks(lab3))
        #expect(!registry.teamHosts.lacks(try host("lab1")))
        #expect(
            "\(RegistryError.hostOffline(shop, lab3))"
                == "the host lab3 of the team is offline; shop.lab3 returns with it"
        )
        await registry.setOwnHost(nil)
        #expect(try await reason("shop.lab9") == .noSuchEndpoint("shop.lab9") && !registry.teamHosts.lacks(lab9))
    }
}
