import Model
import TestSupport
import Testing

@testable import Discovery

@Suite struct ServiceTableTests: ServiceTableSuite {
    let now = ContinuousClock.now

    @Test func `a service is listed once its port and address are known`() throws {
        var table = ServiceTable()
        let shop = key("AppReveal-com.example.shop")

        table.found(shop)
        table.advance(now: now)
        #expect(table.drainActions() == [.resolve(shop, wantsAddress: false)])
        table.resolved(shop, details(), now: now)
        #expect(table.drainActions() == [.follow(machine())])
        #expect(table.drainEvents(seenFrom: local).isEmpty)
        table.address(machine(), try #require(address(10, 0, 0, 5)), transport: 0, isPresent: true)

        let events = table.drainEvents(seenFrom: local)
        guard case .seen(let sighting)? = events.first, events.count == 1 else {
            Issue.record("not one sighting: \(events)")
            return
        }
        #expect(sighting.routes.map(\.description) == ["10.0.0.5:8080"])
        #expect(sighting.app.text == "com.example.shop")
        #expect(sighting.machine?.text == "phone.local")
        #expect(sighting.id.key == #"2/ipv4/AppReveal-com\.example\.shop/_appreveal._tcp/local"#)
    }

    @Test func `every address of a machine is a route, and link-local routes have an interface`() throws {
        var table = try listing(key("a"))

        table.address(
            machine(),
            try #require(address(0xFE, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9)),
            transport: 1,
            isPresent: true
        )

        guard case .seen(let sighting)? = table.drainEvents(seenFrom: local).first else {
            Issue.record("nothing seen")
            return
        }
        #expect(sighting.routes.map(\.description) == ["10.0.0.5:8080", "[fe80::9%eth0]:8080"])
        #expect(
            sighting.routes.last
                == .network(
                    NetworkRoute(
                        address: "fe80::9",
                        port: 8080,
                        interface: "eth0",
                        interfaceIndex: 2,
                        machine: sighting.machine
                    )
                )
        )
    }

    @Test func `an address reported over both IP versions stays until both withdraw it`() throws {
        var table = try listing(key("a"))
        let same = try #require(address(10, 0, 0, 5))
        table.address(machine(), same, transport: 1, isPresent: true)
        #expect(table.drainEvents(seenFrom: local).isEmpty)

        table.address(machine(), same, transport: 0, isPresent: false)
        #expect(table.drainEvents(seenFrom: local).isEmpty)

        table.address(machine(), same, transport: 1, isPresent: false)
        #expect(table.drainEvents(seenFrom: local) == [.lost(key("a").id)])
    }

    @Test func `a goodbye is reported at once and frees all objects`() throws {
        var table = try listing(key("a"))

        table.disappeared(key("a"))

        #expect(table.drainEvents(seenFrom: local) == [.lost(key("a").id)])
        #expect(Set(table.drainActions()) == [.stopResolving(key("a")), .unfollow(machine())])
        #expect(table.machines.keys.isEmpty && table.instances.isEmpty)
    }

    @Test func `two services of one machine share its address browsers`() throws {
        var table = try listing(key("a"))
        table.found(key("b"))
        table.advance(now: now)
        table.resolved(key("b"), details("PHONE.local", port: 9), now: now)
        #expect(table.drainActions() == [.resolve(key("b"), wantsAddress: false)])
        #expect(table.drainEvents(seenFrom: local).count == 1)

        table.disappeared(key("a"))
        #expect(table.drainActions() == [.stopResolving(key("a"))])
    }

    @Test func `a changed TXT record is reported, and an unchanged one is not`() throws {
        var table = try listing(key("a"))

        table.resolved(key("a"), details("phone.local", port: 8080, "v=2"), now: now)
        #expect(table.drainEvents(seenFrom: local).count == 1)
        table.resolved(key("a"), details("phone.local", port: 8080, "v=2"), now: now)
        #expect(table.drainEvents(seenFrom: local).isEmpty)
    }

    @Test func `port 0 is refused with a reason and ends an existing sighting`() throws {
        var table = try listing(key("a"))

        table.resolved(key("a"), details(port: 0), now: now)

        #expect(table.drainEvents(seenFrom: local) == [.lost(key("a").id)])
        #expect(table.drainActions() == [.refuse(key("a"), reason: "it advertises port 0")])
        #expect(table.counts == ServiceCounter.Counts(found: 1, resolved: 0, failed: 0, refused: 1))
    }

    @Test func `a service with only loopback addresses is listed as blocked`() throws {
        var table = ServiceTable()
        table.found(key("a"))
        table.advance(now: now)
        table.resolved(key("a"), details(), now: now)
        table.address(machine(), try #require(address(127, 0, 0, 1)), transport: 0, isPresent: true)

        guard case .seen(let sighting)? = table.drainEvents(seenFrom: local).first else {
            Issue.record("nothing seen")
            return
        }
        #expect(sighting.routes.isEmpty)
        #expect(sighting.port == details().port)
        #expect(sighting.blocked == "127.0.0.1 is the loopback address; Patchbay does not connect to it")
        #expect(table.counts.refused == 1)
    }

    @Test func `one failure keeps a sighting, the second ends it, and the retry delays grow`()
        throws
    {
        var table = try listing(key("a"))
        var moment = now
        table.unresolved(key("a"), now: moment)
        #expect(table.drainEvents(seenFrom: local).isEmpty)

        var waits: [Double] = []
        for _ in 0..<5 {
            let next = try #require(table.deadline)
            waits.append((next - moment) / .seconds(1))
            moment = next
            table.advance(now: moment)
            #expect(table.drainActions().contains(.resolve(key("a"), wantsAddress: false)))
            table.unresolved(key("a"), now: moment)
            #expect(table.drainEvents(seenFrom: local) == (waits.count == 1 ? [.lost(key("a").id)] : []))
        }

        #expect(waits == [1, 5, 15, 60, 60])
        #expect(table.counts.failed == 1)
    }

    @Test func `the number of lookups is limited by the window, and open resolvers by their limit`() {
        var limits = ServiceTable.Limits()
        (limits.window, limits.openResolvers) = (2, 3)
        var table = ServiceTable(limits: limits)
        let keys = (0..<6).map { key("s\($0)") }
        for key in keys { table.found(key) }

        var asked: [ServiceKey] = []
        while asked.count < keys.count {
            table.advance(now: now)
            let batch = table.drainActions().compactMap { action in
                if case .resolve(let key, _) = action { key } else { nil }
            }
            #expect((1...2).contains(batch.count))
            for key in batch { table.resolved(key, details(), now: now) }
            asked += batch
        }

        #expect(Set(asked) == Set(keys))
        #expect(table.instances.values.count { $0.resolution == .watching } == 3)
        #expect(table.instances.values.count { $0.resolution == .idle } == 3)
        #expect(table.deadline == now + LookupTiming.secondLookupDelay)
    }

    @Test func `above the limit of machines a resolver returns the address itself`() throws {
        var limits = ServiceTable.Limits()
        limits.machines = 0
        var table = ServiceTable(limits: limits)
        table.found(key("a"))
        table.advance(now: now)
        #expect(table.drainActions() == [.resolve(key("a"), wantsAddress: true)])

        table.resolved(
            key("a"),
            ResolvedService(machine: "h.local", port: 1, txt: TXTRecord(), address: address(10, 0, 0, 9)),
            now: now
        )

        #expect(table.drainEvents(seenFrom: local).count == 1)
    }

    @Test func `lookups that started before the machine limit was reached are repeated with an address`() throws {
        var limits = ServiceTable.Limits()
        limits.machines = 1
        var table = ServiceTable(limits: limits)
        for name in ["a", "b"] { table.found(key(name)) }
        table.advance(now: now)
        table.resolved(key("a"), details("a.local"), now: now)
        table.resolved(key("b"), details("b.local"), now: now)
        table.advance(now: now)
        #expect(table.drainActions().contains(.resolve(key("b"), wantsAddress: true)))

        table.resolved(
            key("b"),
            ResolvedService(machine: "b.local", port: 1, txt: TXTRecord(), address: address(10, 0, 0, 9)),
            now: now
        )

        #expect(table.drainEvents(seenFrom: local).count == 1)
    }

    @Test func `a service is looked up again shortly after a change and stays listed meanwhile`() throws {
        var table = try listing(key("a"))
        #expect(table.deadline == now + LookupTiming.secondLookupDelay)

        table.advance(now: now + LookupTiming.secondLookupDelay)
        #expect(table.drainActions() == [.stopResolving(key("a")), .resolve(key("a"), wantsAddress: false)])
        table.resolved(key("a"), details("phone.local", port: 9_999), now: now)

        guard case .seen(let sighting)? = table.drainEvents(seenFrom: local).first else {
            Issue.record("nothing seen")
            return
        }
        #expect(sighting.routes.map(\.port) == [9_999])
        // The same result again is not a change and needs no further lookup.
        table.advance(now: now + LookupTiming.secondLookupDelay * 2)
        table.resolved(key("a"), details("phone.local", port: 9_999), now: now)
        #expect(table.deadline == nil)
    }

    @Test func `a service with an unresponsive address is looked up again at once`() throws {
        var table = try listing(key("a"))
        let routes = try #require(table.instances[key("a")]?.listed?.routes)

        table.resolveAgain(at: Set(routes), now: now)
        table.advance(now: now)

        #expect(table.drainActions() == [.stopResolving(key("a")), .resolve(key("a"), wantsAddress: false)])
    }

    @Test func `the same name on another interface or IP version is another sighting`() {
        var table = ServiceTable()
        for key in [key("a"), key("a", transport: 1), key("a", interface: 3)] { table.found(key) }

        #expect(table.instances.count == 3)
        #expect(Set(table.instances.keys.map(\.id)).count == 3)
    }

    @Test func `Patchbay's own service is not listed, and one with the same name on another machine is`() throws {
        var table = try listing(key("Demo", type: "_debug._tcp"))
        var own = OwnAdvertisements(
            services: [.init(name: Array("Demo".utf8), type: "_debug._tcp")],
            machine: "other.local"
        )
        #expect(table.isTaken("Demo", .debug) && !table.isTaken("Demo", .mcp) && !table.isTaken("demo2", .debug))
        table.setPublished(own)
        #expect(table.drainEvents(seenFrom: local).isEmpty)

        own.machine = "phone.local"
        table.setPublished(own)
        #expect(table.drainEvents(seenFrom: local) == [.lost(key("Demo", type: "_debug._tcp").id)])
        #expect(!table.isTaken("Demo", .debug) && table.unresolved == 0)

        table.setPublished(OwnAdvertisements())
        #expect(table.drainEvents(seenFrom: local).count == 1)
    }

    @Test func `composed and decomposed letters are different names`() {
        var table = ServiceTable()
        table.found(key("caf\u{E9}"))
        table.found(key("cafe\u{301}"))

        #expect(table.instances.count == 2)
        #expect(Set(table.instances.keys.map(\.id)).count == 2)
    }

    @Test func `a split instance name is resolved from its records, and replaced records are removed`() throws {
        var table = ServiceTable()
        let app = key("AppReveal-com.example.app")
        let first = try #require(SRVRecord(data: [0, 0, 0, 0, 0, 80] + wire("phone", "local")))
        let second = try #require(SRVRecord(data: [0, 0, 0, 0, 0, 81] + wire("phone", "local")))
        table.foundSplit(app)
        #expect(table.drainActions() == [.followRecords(app)])
        table.location(app, first, isPresent: true)
        #expect(table.drainActions().isEmpty)
        table.text(app, TXTRecord(items: [Array("bundleId=com.example.app".utf8)]), isPresent: true)
        #expect(table.drainActions() == [.follow(machine())])
        table.address(machine(), try #require(address(10, 0, 0, 5)), transport: 0, isPresent: true)
        #expect(table.drainEvents(seenFrom: local).count == 1)

        table.location(app, second, isPresent: true)
        table.location(app, first, isPresent: false)
        guard case .seen(let sighting)? = table.drainEvents(seenFrom: local).first else {
            Issue.record("nothing seen")
            return
        }
        #expect(sighting.routes.map(\.port) == [81])

        table.disappeared(app)
        #expect(table.drainEvents(seenFrom: local) == [.lost(app.id)])
        #expect(Set(table.drainActions()) == [.unfollowRecords(app), .unfollow(machine())])
    }

    @Test func `random events in any order keep the counts consistent`() throws {
        var random = SeededGenerator(seed: 7)
        var limits = ServiceTable.Limits()
        (limits.window, limits.openResolvers, limits.machines) = (3, 4, 2)
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
            case 4: table.address(machine(name), ten, transport: 0, isPresent: .random(using: &random))
            default: moment += .seconds(3)
            }
            table.advance(now: moment)
            let inFlight = table.instances.values.count { instance in
                if case .trying = instance.resolution { true } else { false }
            }
            #expect(inFlight <= 3 + limits.slow)
            #expect(table.instances.values.count { $0.resolution == .watching } <= 4)
            #expect(table.machines.followedCount <= 2)
            #expect(table.counts.found == table.instances.count)
            #expect(table.counts.resolved == table.instances.values.count { $0.listed != nil })
            #expect(Set(table.machines.keys) == Set(table.instances.values.compactMap(\.machine)))
            for event in table.drainEvents(seenFrom: local) {
                if case .seen(let sighting) = event { #expect(sighting.routes.allSatisfy { $0.port != 0 }) }
            }
            _ = table.drainActions()
        }
    }
}
