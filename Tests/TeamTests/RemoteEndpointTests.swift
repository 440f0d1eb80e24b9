import FoundationEssentials
import Model
import Samples
import Testing

@testable import Registry
@testable import Team

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

    /// The lists with one local endpoint, `shop-iphone`.
    private static func lists() async throws -> Lists {
        let lists = try Lists()
        await lists.add("shop")
        return lists
    }

    @Test func `the endpoints of all hosts are listed in the order of their IDs`() async throws {
        let lists = try await Self.lists()
        lists.remote.apply([
            .put(Self.endpoint("till"), of: Self.lab2), .put(Self.endpoint("shop-iphone"), of: Self.lab3),
            .put(Self.endpoint("shop-iphone"), of: Self.lab2),
        ])

        let ids = await lists.all.endpoints.map(\.id.text)

        #expect(ids == ["shop-iphone", "shop-iphone.lab2", "shop-iphone.lab3", "till.lab2"])
        #expect(await lists.all.list.endpoints.map(\.id.text) == ids)
        #expect(try await lists.all.endpoint(Self.id("shop-iphone.lab2")).host?.name == Self.lab2)
        #expect(try await lists.all.endpoint(Self.id("shop-iphone.lab1")).id.text == "shop-iphone")
        lists.remote.setHosts([HostStatus(name: Self.lab2)])
        await #expect(throws: RegistryError.noSuchEndpoint("mail.lab2")) {
            try await lists.all.endpoint(Self.id("mail.lab2"))
        }
    }

    @Test func `a remote endpoint keeps the approval of its owner and has no route of this broker`() async throws {
        let lists = try await Self.lists()
        lists.remote.apply([.put(Self.endpoint("till", approval: .changed), of: Self.lab2)])
        let id = Self.id("till.lab2")

        await lists.registry.setTrust(.none, of: id)
        await lists.registry.report(DialError(.refused, "refused"), of: id)
        await lists.registry.acceptServer(of: id)

        let endpoint = try await lists.all.endpoint(id)
        #expect(endpoint.approval == .changed && endpoint.state == .online)
        #expect(endpoint.routes.isEmpty && endpoint.hostRoutes?.count == 1)
    }

    @Test func `each change of a remote endpoint has a revision and an event`() async throws {
        let lists = try await Self.lists()
        let (_, changes) = await lists.all.changes(after: nil)
        let before = lists.all.revision

        lists.remote.apply([.put(Self.endpoint("till"), of: Self.lab2)])
        lists.remote.apply([.put(Self.endpoint("till"), of: Self.lab2)])
        lists.remote.apply([.put(Self.endpoint("till", state: .offline), of: Self.lab2)])
        lists.remote.apply([.remove(Self.id("till"), of: Self.lab2), .remove(Self.id("till"), of: Self.lab2)])
        let (start, _) = await lists.all.changes(after: before + 1)
        lists.remote.finish()

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
        let lists = try await Self.lists()
        let local = try await lists.all.endpoint(Self.id("shop-iphone"))

        lists.remote.apply([
            .put(Self.endpoint("shop-iphone", state: .blocked), of: Self.lab1), .removeAll(of: Self.lab1),
        ])

        #expect(await lists.all.endpoints == [local])
    }

    @Test func `a change of this host has the same revision in its registry and in the list`() async throws {
        let lists = try await Self.lists()
        let (_, changes) = await lists.registry.changes()
        let (_, all) = await lists.all.changes(after: nil)

        lists.remote.apply([.put(Self.endpoint("till"), of: Self.lab2)])
        await lists.add("mail")
        await lists.registry.finish()
        lists.remote.finish()

        let revision = lists.all.revision
        #expect(await changes.reduce(into: []) { $0.append($1.endpoint.id.text) } == ["mail-iphone"])
        #expect(await all.reduce(into: []) { $0.append($1.endpoint.id.text) } == ["till.lab2", "mail-iphone"])
        #expect(await lists.registry.revision == revision)
        #expect(await lists.registry.list(ifChangedSince: revision) == nil)
        let error = RegistryError.onOtherHost(Self.id("till.lab2"), Self.lab2)
        await #expect(throws: error) { try await lists.registry.endpoint(Self.id("till.lab2")) }
        #expect(try await lists.registry.endpoint(Self.id("shop-iphone.lab1")).id.text == "shop-iphone")
    }

    @Test func `a stored remote endpoint is not loaded`() async {
        let stored = PersistedEndpoint(endpoint: Self.endpoint("till").on(Self.lab2), source: .bonjour, keys: [])

        let registry = EndpointRegistry(records: [stored])

        #expect(await registry.endpoints.isEmpty)
        #expect(await registry.records.isEmpty)
    }

    @Test func `a remote endpoint is removed on its host only`() async throws {
        let lists = try await Self.lists()
        lists.remote.apply([.put(Self.endpoint("till", state: .offline), of: Self.lab2)])
        let id = Self.id("till.lab2")

        let error = await #expect(throws: RegistryError.self) { try await lists.registry.remove(id) }

        #expect(error == .onOtherHost(id, Self.lab2))
        #expect(error?.description == "till.lab2 belongs to the host lab2; run the command there")
        #expect(try await lists.all.endpoint(id).id == id)
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

        #expect(Self.text(table.apply(.remove(Self.id("a"), of: Self.lab2))) == ["removed a.lab2", "added a.lab3"])
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

    @Test func `remote endpoints take no place of local ones`() async throws {
        let lists = try await Self.lists()
        lists.remote.apply((0..<5_000).map { RemoteEndpointChange.put(Self.endpoint("e\($0)"), of: Self.lab2) })

        await lists.add("mail", at: "192.168.1.30")

        #expect(await lists.all.endpoints.count == 5_000 + 2)
        #expect(lists.remote.refusals.isEmpty)
        #expect(await lists.registry.refusals.isEmpty)
    }

    @Test func `endpoints of other hosts above the limit are a problem that the status shows`() {
        #expect(SourceStatus(of: RemoteRefusals(counts: [:])) == nil)

        let status = SourceStatus(of: RemoteRefusals(counts: [Self.lab2: 1]))

        #expect(
            status?.detail
                == "endpoints of other hosts are not listed: 1 of lab2, because the limit is 16384 endpoints"
        )
    }

    @Test func `an endpoint is found by the ID that it had before on its host`() async throws {
        let lists = try await Self.lists()
        var endpoint = Self.endpoint("till")
        endpoint.formerIDs = [Self.id("tcp-80")]
        lists.remote.apply([.put(endpoint, of: Self.lab2)])

        #expect(try await lists.all.endpoint(Self.id("tcp-80.lab2")).id.text == "till.lab2")
    }
}

/// Entries that may be outdated, because the team's registry is unreachable.
@Suite struct StaleHostTests {
    private static let date = Date(timeIntervalSince1970: 1_795_000_000)

    private func host(_ name: String) throws -> HostName { try #require(HostName(name)) }

    private func lists(_ count: Int = 1) throws -> Lists {
        let lists = try Lists()
        lists.remote.setHosts([HostStatus(name: try host("lab2"))])
        let template = EndpointID("e")
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
        lists.remote.apply(endpoints.map { RemoteEndpointChange.put($0, of: lab2) })
        return lists
    }

    /// Marks the entries of lab2 as outdated since a time; nil marks them as current.
    private func setStale(since time: Date?, _ lists: Lists) throws {
        lists.remote.setHosts([HostStatus(name: try host("lab2"), staleSince: time)])
    }

    @Test func `every entry of a host is outdated and current again with one event of the hosts`() async throws {
        let lists = try lists(1_000)
        let (_, changes) = await lists.all.changes(after: nil)
        var hosts = lists.remote.hosts.lists().makeAsyncIterator()
        #expect(await hosts.next()?.map(\.staleSince) == [nil])
        let revision = lists.all.revision

        try setStale(since: Self.date, lists)

        #expect(await hosts.next()?.map(\.staleSince) == [Self.date])
        #expect(lists.all.revision == revision + 1)
        #expect(await lists.all.endpoints.allSatisfy { $0.host?.staleSince == Self.date && $0.state == .online })
        let id = EndpointID("e7.lab2")
        #expect(try await lists.all.endpoint(id).host?.staleSince == Self.date)

        try setStale(since: nil, lists)

        #expect(await hosts.next()?.map(\.staleSince) == [nil])
        #expect(await lists.all.endpoints.allSatisfy { $0.host?.staleSince == nil })
        lists.remote.finish()
        #expect(await changes.reduce(into: 0) { count, _ in count += 1 } == 0)
    }

    @Test func `a client that waits for a revision after a stale mark gets no wrong replay`() async throws {
        let lists = try lists()
        let revision = lists.all.revision
        try setStale(since: Self.date, lists)
        lists.remote.apply([.removeAll(of: try host("lab2"))])

        let (start, _) = await lists.all.changes(after: revision)

        guard case .replay(let missed) = start else {
            Issue.record("the change is still kept")
            return
        }
        #expect(missed.map(\.revision) == [revision + 2] && missed.map(\.kind) == [.removed])
        #expect(lists.all.lastChangeRevision == revision + 2)
    }

    @Test func `an event of an outdated host says so`() async throws {
        let lists = try lists()
        try setStale(since: Self.date, lists)
        let (_, changes) = await lists.all.changes(after: nil)
        lists.remote.apply([.removeAll(of: try host("lab2"))])
        lists.remote.finish()

        #expect(await changes.reduce(into: []) { $0.append($1.endpoint.host?.staleSince) } == [Self.date])
    }

    @Test func `this host is not in the list of the others`() async throws {
        let lists = try lists()

        lists.remote.setHosts([HostStatus(name: try host("lab3")), HostStatus(name: try host("lab1"))])

        #expect(lists.remote.hosts.others.map(\.name.text) == ["lab3"])
    }

    @Test func `a client sees the host of each endpoint`() async throws {
        let lists = try lists()
        await lists.add("till")

        #expect(await lists.all.endpoints.map(\.host?.name.text) == ["lab2", "lab1"])
        #expect(await lists.registry.endpoints.map(\.host) == [nil])
    }

    @Test func `a missing endpoint of another host has the state of the host as reason`() async throws {
        let lists = try lists()
        func reason(_ id: String) async throws -> RegistryError? {
            let id = try #require(EndpointID(id))
            return await #expect(throws: RegistryError.self) { try await lists.all.endpoint(id) }
        }
        let (lab3, lab9) = (try host("lab3"), try host("lab9"))
        let shop = EndpointID("shop.lab3")

        #expect(try await reason("shop.lab3") == .hostNotKnown(lab3))
        #expect(!lists.remote.hosts.lacks(lab9))
        lists.remote.hosts.setMembers([try host("lab1"), try host("lab2"), lab3])

        #expect(try await reason("shop.lab3") == .hostOffline(shop, lab3))
        #expect(try await reason("shop.lab9") == .noSuchHost(lab9))
        #expect(try await reason("shop.lab2") == .noSuchEndpoint("shop.lab2"))
        #expect(try await reason("shop.lab1") == .noSuchEndpoint("shop"))
        #expect(lists.remote.hosts.lacks(lab9) && !lists.remote.hosts.lacks(lab3))
        #expect(!lists.remote.hosts.lacks(try host("lab1")))
        #expect(
            "\(RegistryError.hostOffline(shop, lab3))"
                == "the host lab3 of the team is offline; shop.lab3 returns with it"
        )
    }
}
