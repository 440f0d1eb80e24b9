import Model
import Testing

@testable import Discovery

/// Behaviour of the table with more names than it can look up.
@Suite struct ServiceFloodTests {
    private let now = ContinuousClock.now

    @Test func `above the limit the oldest services of a flood are dropped, counted and logged`() {
        var limits = ServiceTable.Limits()
        limits.services = 3
        var table = ServiceTable(limits: limits)
        for number in 0..<10 { table.found(key("s\(number)")) }

        #expect(table.instances.count == 3)
        #expect(table.instances[key("s9")] != nil)
        #expect(table.counts.dropped == 7)
        let reported = table.drainActions().map { action in if case .drop(let count, _) = action { count } else { 0 } }
        #expect(reported == [1, 2, 4])
    }

    @Test func `at the limit failing services are dropped, and listed ones stay`() throws {
        var limits = ServiceTable.Limits()
        limits.services = 2
        var table = ServiceTable(limits: limits)
        for name in ["good", "bad"] { table.found(key(name)) }
        table.advance(now: now)
        table.resolved(
            key("good"),
            ResolvedService(machine: "h.local", port: 1, txt: TXTRecord(), address: address(10, 0, 0, 9)),
            now: now
        )
        table.unresolved(key("bad"), now: now)

        table.found(key("new"))

        #expect(Set(table.instances.keys) == [key("good"), key("new")])
    }

    @Test func `a service of another type is looked up at once beside a thousand unresponsive names`() {
        var table = ServiceTable()
        for number in 0..<1_000 { table.found(key("flood\(number)")) }
        table.advance(now: now)
        _ = table.drainActions()

        table.found(key("quiet", type: "_debug._tcp"))
        for number in 1_000..<2_000 { table.found(key("flood\(number)")) }
        table.advance(now: now + LookupTiming(failed: 0).timeout(isFirst: true))

        #expect(table.drainActions().contains(.resolve(key("quiet", type: "_debug._tcp"), wantsAddress: false)))
    }

    @Test func `a service found beside unresponsive names is looked up within a second`() {
        var table = ServiceTable()
        var moment = now
        for number in 0..<2_000 { table.found(key("flood\(number)")) }
        for step in 0..<50 {
            table.advance(now: moment)
            moment += .milliseconds(100)
            if step == 20 { table.found(key("quiet")) }
            let isAsked = table.drainActions().contains(.resolve(key("quiet"), wantsAddress: false))
            if isAsked {
                #expect(step <= 30)
                return
            }
        }
        Issue.record("it was not asked for")
    }

    @Test func `lookups without a response occupy no more places than the limits allow`() {
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

    @Test func `above the crowd threshold a listed service gets a longer lookup timeout than a new one`() {
        var (table, moment) = (ServiceTable(), now)
        table.found(key("listed"))
        table.advance(now: moment)
        table.resolved(key("listed"), ResolvedService(machine: "h.local", port: 1, txt: TXTRecord()), now: moment)
        for number in 0...LookupTiming.crowdThreshold { table.found(key("flood\(number)")) }
        while table.counts.failed <= LookupTiming.crowdThreshold {
            table.advance(now: moment)
            for key in table.instances.keys where key.name != Array("listed".utf8) {
                table.unresolved(key, now: moment)
            }
        }
        moment += LookupTiming.secondLookupDelay
        table.advance(now: moment)
        for number in 100..<300 { table.found(key("flood\(number)")) }
        _ = table.drainActions()

        table.advance(now: moment + LookupTiming(failed: table.counts.failed).timeout(isFirst: true))
        #expect(!table.drainActions().contains(.stopResolving(key("listed"))))
    }

    @Test func `above the crowd threshold a first lookup ends after 60 ms, before Avahi sends a query`() {
        var (table, moment) = (ServiceTable(), now)
        for number in 0...LookupTiming.crowdThreshold { table.found(key("flood\(number)")) }
        while table.counts.failed <= LookupTiming.crowdThreshold {
            table.advance(now: moment)
            for key in table.instances.keys { table.unresolved(key, now: moment) }
        }
        // A lookup leaves its place only if others wait for one.
        for number in 100..<300 { table.found(key("flood\(number)")) }
        table.found(key("new"))
        table.advance(now: moment)
        #expect(table.drainActions().contains(.resolve(key("new"), wantsAddress: false)))

        moment += .milliseconds(59)
        table.advance(now: moment)
        #expect(!table.drainActions().contains(.stopResolving(key("new"))))
        moment += .milliseconds(1)
        table.advance(now: moment)
        #expect(table.drainActions().contains(.stopResolving(key("new"))))
    }
}
