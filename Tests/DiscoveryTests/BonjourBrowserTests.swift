import Model
import Samples
import Testing

@testable import Discovery

@Suite struct BonjourBrowserTests {
    private let avahi = FakeAvahi()

    private func makeBrowser(_ types: ServiceType..., interfaces: [CInt: String] = [2: "eth0"]) -> BonjourBrowser {
        BonjourBrowser(options: DiscoveryOptions(types: types), logger: .quiet) {
            LocalInterfaces(names: interfaces, networks: [])
        }
    }

    @Test func `every type has two browsers, and a type that fails is reported with the reason`() {
        var browser = makeBrowser(.debug, .mcp)
        avahi.codes[.browse(.mcp)] = -11

        browser.start(on: avahi)

        #expect(avahi.drainCalls() == [.browse(.debug), .records(.pointers(.debug)), .browse(.mcp)])
        #expect(browser.isStarted)
        #expect(browser.failedTypes == [.mcp: AvahiString.error(-11)])
        browser.handleService(.failed(-1), nil, isOurOwn: false, of: .services(.debug))
        #expect(browser.failedTypes.count == 2)
    }

    @Test func `the initial sync is complete once all browsers and first lookups have finished`() {
        var browser = makeBrowser(.debug)
        let demo = key("Demo", type: "_debug._tcp")
        browser.start(on: avahi)
        browser.handleService(.appeared, demo, isOurOwn: false, of: .services(.debug))
        browser.handleService(.allForNow, nil, isOurOwn: false, of: .services(.debug))
        browser.handleRecord(.allForNow, interface: 2, transport: 0, [], of: .pointers(.debug))
        _ = avahi.drainCalls()

        browser.advance(on: avahi)
        #expect(avahi.drainCalls() == [.resolve(demo)])
        let isCompleteEarly = browser.completeInitialSync()
        #expect(!isCompleteEarly && browser.discovered == nil)

        browser.unresolved(demo, -1)
        let isComplete = browser.completeInitialSync()
        let isCompleteAgain = browser.completeInitialSync()
        #expect(isComplete && !isCompleteAgain && browser.discovered != nil)
    }

    @Test func `a service on a denied interface and a service of Patchbay are ignored`() {
        var browser = makeBrowser(.debug, interfaces: [2: "docker0", 3: "eth0"])

        browser.handleService(.appeared, key("a", interface: 2), isOurOwn: false, of: .services(.debug))
        browser.handleService(.appeared, key("b", interface: 3), isOurOwn: true, of: .services(.debug))
        #expect(browser.table.counts.found == 0)

        browser.handleService(.appeared, key("c", interface: 3), isOurOwn: false, of: .services(.debug))
        browser.handleService(.appeared, key("d", interface: 9), isOurOwn: false, of: .services(.debug))
        #expect(browser.table.counts.found == 2)
    }

    @Test func `a lookup that cannot be created has failed, unless the connection has`() {
        let demo = key("Demo", type: "_debug._tcp")
        for fault in [nil, AvahiError.absent] {
            var browser = makeBrowser(.debug)
            (avahi.fault, avahi.codes[.resolve(demo)]) = (fault, -1)
            browser.handleService(.appeared, demo, isOurOwn: false, of: .services(.debug))

            browser.advance(on: avahi)

            #expect(browser.table.counts.failed == (fault == nil ? 1 : 0))
        }
    }

    @Test func `a service whose machine is known has its address records browsed, until it disappears`() {
        var browser = makeBrowser(.debug)
        let demo = key("Demo", type: "_debug._tcp")
        let phone = MachineKey(interface: 2, name: "phone.local")
        browser.handleService(.appeared, demo, isOurOwn: false, of: .services(.debug))
        browser.advance(on: avahi)
        browser.resolved(demo, ResolvedService(machine: "phone.local", port: 80, txt: TXTRecord()))
        _ = avahi.drainCalls()

        browser.advance(on: avahi)
        let addresses = [true, false].map { AvahiObjectKey.addresses(phone, isIPv4: $0) }
        #expect(avahi.drainCalls() == addresses.map(FakeAvahi.Call.records))
        browser.handleRecord(.appeared, interface: 2, transport: 0, [10, 0, 0, 5], of: addresses[0])
        #expect(browser.drainEvents(on: avahi).count == 1)

        browser.handleService(.disappeared, demo, isOurOwn: false, of: .services(.debug))
        #expect(browser.drainEvents(on: avahi) == [.lost(demo.id)])
        let freed = Set((addresses + [.resolver(demo)]).map(FakeAvahi.Call.free))
        #expect(Set(avahi.drainCalls()) == freed)
    }
}
