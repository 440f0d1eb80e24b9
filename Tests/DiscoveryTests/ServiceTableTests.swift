import Model
import TestSupport
import Testing

@testable import Discovery

@Suite struct ServiceTableTests {
    private let now = ContinuousClock.now
    private let local = LocalInterfaces(
        names: [2: "eth0"],
        networks: [
            .init(interface: 2, address: [10, 0, 0, 1], mask: [255, 255, 255, 0]),
            .init(
                interface: 2,
                address: [0xFE, 0x80] + [UInt8](repeating: 0, count: 13) + [1],
                mask: [UInt8](repeating: 0xFF, count: 8) + [UInt8](repeating: 0, count: 8)
            ),
        ]
    )

    private func details(_ host: String = "phone.local", port: UInt16 = 8080, _ txt: String...) -> ResolvedService {
        ResolvedService(host: host, port: port, txt: TXTRecord(items: txt.map { Array($0.utf8) }))
    }

    private func host(_ name: String = "phone.local") -> HostKey { HostKey(interface: 2, name: name) }

    /// A table that lists one service at 10.0.0.5.
    private func listing(_ key: ServiceKey) throws -> ServiceTable {
        var table = ServiceTable()
        table.found(key)
        table.advance(now: now)
        table.resolved(key, details(), now: now)
        table.address(host(), try #require(address(10, 0, 0, 5)), transport: 0, isThere: true)
        _ = table.takeActions()
        #expect(table.takeEvents(seenFrom: local).count == 1)
        return table
    }

    @Test func `a service is listed once it has a port and an address`() throws {
        var table = ServiceTable()
        let shop = key("AppReveal-com.example.shop")

        table.found(shop)
        table.advance(now: now)
        #expect(table.takeActions() == [.resolve(shop, wantsAddress: false)])
        table.resolved(shop, details(), now: now)
        #expect(table.takeActions() == [.follow(host())])
        #expect(table.takeEvents(seenFrom: local).isEmpty)
        table.address(host(), try #require(address(10, 0, 0, 5)), transport: 0, isThere: true)

        let events = table.takeEvents(seenFrom: local)
        guard case .seen(let sighting)? = events.first, events.count == 1 else {
            Issue.record("not one sighting: \(events)")
            return
        }
        #expect(sighting.routes.map(\.description) == ["10.0.0.5:8080"])
        #expect(sighting.app.text == "com.example.shop")
        #expect(sighting.host?.text == "phone.local")
        #expect(sighting.id.key == #"2/ipv4/AppReveal-com\.example\.shop/_appreveal._tcp/local"#)
    }

    @Test func `every address of a host is a route, link-local with its interface`() throws {
        var table = try listing(key("a"))

        table.address(
            host(),
            try #require(address(0xFE, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9)),
            transport: 1,
            isThere: true
        )

        guard case .seen(let sighting)? = table.takeEvents(seenFrom: local).first else {
            Issue.record("nothing seen")
            return
        }
        #expect(sighting.routes.map(\.description) == ["10.0.0.5:8080", "[fe80::9%eth0]:8080"])
        #expect(
            sighting.routes.last
                == .lan(
                    LANRoute(address: "fe80::9", port: 8080, interface: "eth0", interfaceIndex: 2, host: sighting.host)
                )
        )
    }

    @Test func `an address told over both protocols is there until both take it back`() throws {
        var table = try listing(key("a"))
        let same = try #require(address(10, 0, 0, 5))
        table.address(host(), same, transport: 1, isThere: true)
        #expect(table.takeEvents(seenFrom: local).isEmpty)

        table.address(host(), same, transport: 0, isThere: false)
        #expect(table.takeEvents(seenFrom: local).isEmpty)

        table.address(host(), same, transport: 1, isThere: false)
        #expect(table.takeEvents(seenFrom: local) == [.lost(key("a").id)])
    }

    @Test func `a goodbye is told at once and frees everything`() throws {
        var table = try listing(key("a"))

        table.disappeared(key("a"))

        #expect(table.takeEvents(seenFrom: local) == [.lost(key("a").id)])
        #expect(Set(table.takeActions()) == [.stopResolving(key("a")), .unfollow(host())])
        #expect(table.hosts.isEmpty && table.instances.isEmpty)
    }

    @Test func `two services of one host share its address browsers`() throws {
        var table = try listing(key("a"))
        table.found(key("b"))
        table.advance(now: now)
        table.resolved(key("b"), details("PHONE.local", port: 9), now: now)
        #expect(table.takeActions() == [.resolve(key("b"), wantsAddress: false)])
        #expect(table.takeEvents(seenFrom: local).count == 1)

        table.disappeared(key("a"))
        #expect(table.takeActions() == [.stopResolving(key("a"))])
    }

    @Test func `a changed TXT record is told, the same again is not`() throws {
        var table = try listing(key("a"))

        table.resolved(key("a"), details("phone.local", port: 8080, "v=2"), now: now)
        #expect(table.takeEvents(seenFrom: local).count == 1)
        table.resolved(key("a"), details("phone.local", port: 8080, "v=2"), now: now)
        #expect(table.takeEvents(seenFrom: local).isEmpty)
    }

    @Test func `port 0 is refused with its reason and ends a sighting that stood`() throws {
        var table = try listing(key("a"))

        table.resolved(key("a"), details(port: 0), now: now)

        #expect(table.takeEvents(seenFrom: local) == [.lost(key("a").id)])
        #expect(table.takeActions() == [.refuse(key("a"), reason: "it advertises port 0")])
        #expect(table.counts == ServiceTable.Counts(found: 1, resolved: 0, failed: 0, refused: 1))
    }

    @Test func `a service that only has loopback addresses is listed as blocked`() throws {
        var table = ServiceTable()
        table.found(key("a"))
        table.advance(now: now)
        table.resolved(key("a"), details(), now: now)
        table.address(host(), try #require(address(127, 0, 0, 1)), transport: 0, isThere: true)

        guard case .seen(let sighting)? = table.takeEvents(seenFrom: local).first else {
            Issue.record("nothing seen")
            return
        }
        #expect(sighting.routes.isEmpty)
        #expect(sighting.port == details().port)
        #expect(sighting.blocked == "127.0.0.1 is the loopback address, so that it is not dialled")
        #expect(table.counts.refused == 1)
    }

    @Test func `one failure keeps a sighting, the second in a row ends it, and it is asked for ever more rarely`()
        throws
    {
        var table = try listing(key("a"))
        var moment = now
        table.unresolved(key("a"), now: moment)
        #expect(table.takeEvents(seenFrom: local).isEmpty)

        var waits: [Double] = []
        for _ in 0..<5 {
            let next = try #require(table.deadline)
            waits.append((next - moment) / .seconds(1))
            moment = next
            table.advance(now: moment)
            #expect(table.takeActions().contains(.resolve(key("a"), wantsAddress: false)))
            table.unresolved(key("a"), now: moment)
            #expect(table.takeEvents(seenFrom: local) == (waits.count == 1 ? [.lost(key("a").id)] : []))
        }

        #expect(waits == [1, 5, 15, 60, 60])
        #expect(table.counts.failed == 1)
    }

    @Test func `no more resolvers than the window are in flight, and no more than the budget are kept`() {
        var limits = ServiceTable.Limits()
        (limits.window, limits.kept) = (2, 3)
        var table = ServiceTable(limits: limits)
        let keys = (0..<6).map { key("s\($0)") }
        for key in keys { table.found(key) }

        var asked: [ServiceKey] = []
        while asked.count < keys.count {
            table.advance(now: now)
            let batch = table.takeActions().compactMap { action in
                if case .resolve(let key, _) = action { key } else { nil }
            }
            #expect((1...2).contains(batch.count))
            for key in batch { table.resolved(key, details(), now: now) }
            asked += batch
        }

        #expect(Set(asked) == Set(keys))
        #expect(table.instances.values.count { $0.resolution == .kept } == 3)
        #expect(table.instances.values.count { $0.resolution == .resting } == 3)
        #expect(table.deadline == now + ServiceTable.secondLook)
    }

    @Test func `beyond the budget of hosts a resolver brings the address itself`() throws {
        var limits = ServiceTable.Limits()
        limits.hosts = 0
        var table = ServiceTable(limits: limits)
        table.found(key("a"))
        table.advance(now: now)
        #expect(table.takeActions() == [.resolve(key("a"), wantsAddress: true)])

        table.resolved(
            key("a"),
            ResolvedService(host: "h.local", port: 1, txt: TXTRecord(), address: address(10, 0, 0, 9)),
            now: now
        )

        #expect(table.takeEvents(seenFrom: local).count == 1)
    }

    @Test func `lookups that began before the last host was followed are repeated with an address`() throws {
        var limits = ServiceTable.Limits()
        limits.hosts = 1
        var table = ServiceTable(limits: limits)
        for name in ["a", "b"] { table.found(key(name)) }
        table.advance(now: now)
        table.resolved(key("a"), details("a.local"), now: now)
        table.resolved(key("b"), details("b.local"), now: now)
        table.advance(now: now)
        #expect(table.takeActions().contains(.resolve(key("b"), wantsAddress: true)))

        table.resolved(
            key("b"),
            ResolvedService(host: "b.local", port: 1, txt: TXTRecord(), address: address(10, 0, 0, 9)),
            now: now
        )

        #expect(table.takeEvents(seenFrom: local).count == 1)
    }

    @Test func `a service is asked for once more a moment after news, and is listed meanwhile`() throws {
        var table = try listing(key("a"))
        #expect(table.deadline == now + ServiceTable.secondLook)

        table.advance(now: now + ServiceTable.secondLook)
        #expect(table.takeActions() == [.stopResolving(key("a")), .resolve(key("a"), wantsAddress: false)])
        table.resolved(key("a"), details("phone.local", port: 9_999), now: now)

        guard case .seen(let sighting)? = table.takeEvents(seenFrom: local).first else {
            Issue.record("nothing seen")
            return
        }
        #expect(sighting.routes.map(\.port) == [9_999])
        // The same again is no news, and needs no further look.
        table.advance(now: now + ServiceTable.secondLook * 2)
        table.resolved(key("a"), details("phone.local", port: 9_999), now: now)
        #expect(table.deadline == nil)
    }

    @Test func `a service whose address is silent is asked for again at once`() throws {
        var table = try listing(key("a"))
        let routes = try #require(table.instances[key("a")]?.listed?.routes)

        table.lookAgain(at: Set(routes), now: now)
        table.advance(now: now)

        #expect(table.takeActions() == [.stopResolving(key("a")), .resolve(key("a"), wantsAddress: false)])
    }

    @Test func `the same name on another interface or protocol is another sighting`() {
        var table = ServiceTable()
        for key in [key("a"), key("a", transport: 1), key("a", interface: 3)] { table.found(key) }

        #expect(table.instances.count == 3)
        #expect(Set(table.instances.keys.map(\.id)).count == 3)
    }

    @Test func `what turns out to be our own is no longer listed, and a twin on another host is`() throws {
        var table = try listing(key("Demo", type: "_debug._tcp"))
        var own = PublishedServices(
            services: [.init(name: Array("Demo".utf8), type: "_debug._tcp")],
            host: "other.local"
        )
        #expect(table.isTaken("Demo", .debug) && !table.isTaken("Demo", .mcp) && !table.isTaken("demo2", .debug))
        table.own(own)
        #expect(table.takeEvents(seenFrom: local).isEmpty)

        own.host = "phone.local"
        table.own(own)
        #expect(table.takeEvents(seenFrom: local) == [.lost(key("Demo", type: "_debug._tcp").id)])
        #expect(!table.isTaken("Demo", .debug) && table.unresolved == 0)

        table.own(PublishedServices())
        #expect(table.takeEvents(seenFrom: local).count == 1)
    }

    @Test func `composed and decomposed letters are two names`() {
        var table = ServiceTable()
        table.found(key("caf\u{E9}"))
        table.found(key("cafe\u{301}"))

        #expect(table.instances.count == 2)
        #expect(Set(table.instances.keys.map(\.id)).count == 2)
    }

    @Test func `a split advert is listed out of its records, whose old ones leave after the new ones came`() throws {
        var table = ServiceTable()
        let app = key("AppReveal-com.example.app")
        let first = try #require(SRVRecord(data: [0, 0, 0, 0, 0, 80] + wire("phone", "local")))
        let second = try #require(SRVRecord(data: [0, 0, 0, 0, 0, 81] + wire("phone", "local")))
        table.foundSplit(app)
        #expect(table.takeActions() == [.followRecords(app)])
        table.location(app, first, isThere: true)
        #expect(table.takeActions().isEmpty)
        table.text(app, TXTRecord(items: [Array("bundleId=com.example.app".utf8)]), isThere: true)
        #expect(table.takeActions() == [.follow(host())])
        table.address(host(), try #require(address(10, 0, 0, 5)), transport: 0, isThere: true)
        #expect(table.takeEvents(seenFrom: local).count == 1)

        table.location(app, second, isThere: true)
        table.location(app, first, isThere: false)
        guard case .seen(let sighting)? = table.takeEvents(seenFrom: local).first else {
            Issue.record("nothing seen")
            return
        }
        #expect(sighting.routes.map(\.port) == [81])

        table.disappeared(app)
        #expect(table.takeEvents(seenFrom: local) == [.lost(app.id)])
        #expect(Set(table.takeActions()) == [.unfollowRecords(app), .unfollow(host())])
    }

    @Test func `no order of facts breaks the counts`() throws {
        var random = SeededGenerator(seed: 7)
        var limits = ServiceTable.Limits()
        (limits.window, limits.kept, limits.hosts) = (3, 4, 2)
        var table = ServiceTable(limits: limits)
        var moment = now
        let ten = try #require(address(10, 0, 0, 1))
        for _ in 0..<20_000 {
            let key = key("s\(Int.random(in: 0..<12, using: &random))")
            let name = "h\(Int.random(in: 0..<4, using: &random)).local"
            switch Int.random(in: 0..<6, using: &random) {
            case 0: table.found(key)
            case 1: table.disappeared(key)
            case 2: table.resolved(key, details(name, port: .random(in: 0...2, using: &random)), now: moment)
            case 3: table.unresolved(key, now: moment)
            case 4: table.address(host(name), ten, transport: 0, isThere: .random(using: &random))
            default: moment += .seconds(3)
            }
            table.advance(now: moment)
            let inFlight = table.instances.values.count { instance in
                if case .trying = instance.resolution { true } else { false }
            }
            #expect(inFlight <= 3 + limits.slow)
            #expect(table.instances.values.count { $0.resolution == .kept } <= 4)
            #expect(table.hosts.values.count(where: \.isFollowed) <= 2)
            #expect(table.counts.found == table.instances.count)
            #expect(table.counts.resolved == table.instances.values.count { $0.listed != nil })
            for host in table.hosts.values { #expect(!host.users.isEmpty) }
            for event in table.takeEvents(seenFrom: local) {
                if case .seen(let sighting) = event { #expect(sighting.routes.allSatisfy { $0.port != 0 }) }
            }
            _ = table.takeActions()
        }
    }
}
