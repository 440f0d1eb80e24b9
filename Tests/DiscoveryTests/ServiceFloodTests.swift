import Model
import Testing

@testable import Discovery

/// What a table does with more names than it can look up.
@Suite struct ServiceFloodTests {
    private let now = ContinuousClock.now

    @Test func `of a flood of names those beyond the limit are dropped, counted and told, and the newest stay`() {
        var limits = ServiceTable.Limits()
        limits.services = 3
        var table = ServiceTable(limits: limits)
        for number in 0..<10 { table.found(key("s\(number)")) }

        #expect(table.instances.count == 3)
        #expect(table.instances[key("s9")] != nil)
        #expect(table.counts.dropped == 7)
        let told = table.takeActions().map { action in if case .drop(let count, _) = action { count } else { 0 } }
        #expect(told == [1, 2, 4])
    }

    @Test func `at the limit what fails makes room, and what is listed stays`() throws {
        var limits = ServiceTable.Limits()
        limits.services = 2
        var table = ServiceTable(limits: limits)
        for name in ["good", "bad"] { table.found(key(name)) }
        table.advance(now: now)
        table.resolved(
            key("good"),
            ResolvedService(host: "h.local", port: 1, txt: TXTRecord(), address: address(10, 0, 0, 9)),
            now: now
        )
        table.unresolved(key("bad"), now: now)

        table.found(key("new"))

        #expect(Set(table.instances.keys) == [key("good"), key("new")])
    }

    @Test func `a service of another type is asked for at once beside a thousand names that answer nothing`() {
        var table = ServiceTable()
        for number in 0..<1_000 { table.found(key("flood\(number)")) }
        table.advance(now: now)
        _ = table.takeActions()

        table.found(key("quiet", type: "_debug._tcp"))
        for number in 1_000..<2_000 { table.found(key("flood\(number)")) }
        table.advance(now: now + ServiceTable.patience)

        #expect(table.takeActions().contains(.resolve(key("quiet", type: "_debug._tcp"), wantsAddress: false)))
    }

    @Test func `what is found while names that answer nothing wait has its lookup within a second`() {
        var table = ServiceTable()
        var moment = now
        for number in 0..<2_000 { table.found(key("flood\(number)")) }
        for step in 0..<50 {
            table.advance(now: moment)
            moment += .milliseconds(100)
            if step == 20 { table.found(key("quiet")) }
            let isAsked = table.takeActions().contains(.resolve(key("quiet"), wantsAddress: false))
            if isAsked {
                #expect(step <= 30)
                return
            }
        }
        Issue.record("it was not asked for")
    }

    @Test func `lookups without an answer hold no more places than the limits give`() {
        var table = ServiceTable()
        var moment = now
        for number in 0..<2_000 { table.found(key("flood\(number)")) }
        for _ in 0..<100 {
            table.advance(now: moment)
            moment += .milliseconds(100)
            let inFlight = table.instances.values.count { instance in
                if case .trying = instance.resolution { true } else { false }
            }
            #expect(inFlight <= table.limits.window + table.limits.slow)
        }
    }

    @Test func `in a crowd a listed service is looked up again with more patience than a new one`() {
        var (table, moment) = (ServiceTable(), now)
        table.found(key("listed"))
        table.advance(now: moment)
        table.resolved(key("listed"), ResolvedService(host: "h.local", port: 1, txt: TXTRecord()), now: moment)
        for number in 0...ServiceTable.patientCrowd { table.found(key("flood\(number)")) }
        while table.counts.failed <= ServiceTable.patientCrowd {
            table.advance(now: moment)
            for key in table.instances.keys where key.name != Array("listed".utf8) {
                table.unresolved(key, now: moment)
            }
        }
        moment += ServiceTable.secondLook
        table.advance(now: moment)
        for number in 100..<300 { table.found(key("flood\(number)")) }
        _ = table.takeActions()

        table.advance(now: moment + ServiceTable.glance)
        #expect(!table.takeActions().contains(.stopResolving(key("listed"))))
    }

    @Test func `in a crowd a first lookup is given up after 60 ms, before Avahi sends a query for it`() {
        var (table, moment) = (ServiceTable(), now)
        for number in 0...ServiceTable.patientCrowd { table.found(key("flood\(number)")) }
        while table.counts.failed <= ServiceTable.patientCrowd {
            table.advance(now: moment)
            for key in table.instances.keys { table.unresolved(key, now: moment) }
        }
        // A lookup leaves its place only where others wait for it.
        for number in 100..<300 { table.found(key("flood\(number)")) }
        table.found(key("new"))
        table.advance(now: moment)
        #expect(table.takeActions().contains(.resolve(key("new"), wantsAddress: false)))

        moment += .milliseconds(59)
        table.advance(now: moment)
        #expect(!table.takeActions().contains(.stopResolving(key("new"))))
        moment += .milliseconds(1)
        table.advance(now: moment)
        #expect(table.takeActions().contains(.stopResolving(key("new"))))
    }
}
