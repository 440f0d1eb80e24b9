import FoundationEssentials
import Model
import TestSupport
import Testing

@testable import AccessControl

@Suite struct EndpointCallEventTests {
    private static func endpoint(_ routes: [EndpointRoute]) throws -> Endpoint {
        Endpoint(
            id: try #require(EndpointID("shop-iphone")),
            kind: .appreveal,
            app: SanitizedText("com.example.shop"),
            name: SanitizedText("Shop"),
            state: .online,
            approval: .discovered,
            routes: routes,
            since: Date(timeIntervalSince1970: 0),
            lastSeen: nil
        )
    }

    private static let lan = EndpointRoute(
        .lan(LANRoute(address: "192.168.1.20", port: 5_000, interface: "wlan0", host: SanitizedText("iphone.local")))
    )
    private static func usb(boot: String = "1") throws -> EndpointRoute {
        let route = USBRoute(udid: try #require(UDID("00008120-000A1B2C3D4E5F60")), port: 5_000)
        return EndpointRoute(.usb(route), boot: SanitizedText(boot))
    }

    @Test func `an agent gets the approved routes, with the secret for this launch`() async throws {
        try await withScratchFolder { scratch in
            let store = try Bench.store(in: scratch)
            let both = try Self.endpoint([Self.usb(), Self.lan])
            try await store.setSecret(EndpointSecret("abc"), of: both, by: Bench.owner, from: Bench.socket)

            let now = store.clearance(of: both)
            let later = store.clearance(of: try Self.endpoint([Self.usb(boot: "2")]))

            #expect(now.passages.map(\.route) == [try Self.usb().route])
            #expect(now.passages.first?.secret?.reveal() == "abc")
            #expect(!now.isRefused && !now.isSecretOutdated)
            #expect(now.withoutSecrets.passages.allSatisfy { $0.secret == nil })
            #expect(later.passages.first?.secret == nil)
            #expect(later.isSecretOutdated)
        }
    }

    @Test func `a secret that comes before the app is seen at its new port is for that launch`() async throws {
        try await withScratchFolder { scratch in
            func shop(_ port: UInt16) throws -> Endpoint {
                try Self.endpoint([EndpointRoute(.lan(LANRoute(address: "192.168.1.20", port: port)))])
            }
            let store = try Bench.store(in: scratch)
            try await store.setSecret(
                EndpointSecret("new"),
                of: shop(5_000),
                on: 6_000,
                by: Bench.owner,
                from: Bench.socket
            )
            try await store.close()
            let again = try Bench.store(in: scratch)

            #expect(again.clearance(of: try shop(6_000)).passages.first?.secret?.reveal() == "new")
            #expect(await again.holdsSecret(of: try shop(6_000)))
            #expect(again.clearance(of: try shop(7_000)).passages.first?.secret == nil)
            #expect(again.clearance(of: try shop(7_000)).isSecretOutdated)
        }
    }

    @Test func `what nobody approved is refused, what is nowhere is not`() async throws {
        try await withScratchFolder { scratch in
            let store = try Bench.store(in: scratch)

            let discovered = store.clearance(of: try Self.endpoint([Self.lan]))
            let away = store.clearance(of: try Self.endpoint([]))

            #expect(discovered.isRefused && discovered.passages.isEmpty)
            #expect(!away.isRefused && away.passages.isEmpty)
        }
    }

    @Test func `a new yes, a new secret and the end of either are told`() async throws {
        try await withScratchFolder { scratch in
            let store = try Bench.store(in: scratch)
            let lan = try Self.endpoint([Self.lan])
            var changes = await store.trustChanges().makeAsyncIterator()

            try await store.approve(lan, by: Bench.owner, from: Bench.socket)
            #expect(await changes.next() == lan.id)
            try await store.setSecret(EndpointSecret("abc"), of: lan, by: Bench.owner, from: Bench.socket)
            #expect(await changes.next() == lan.id)
            try await store.forgetSecret(of: lan.id, by: Bench.owner, from: Bench.socket)
            #expect(await changes.next() == lan.id)
        }
    }

    @Test func `a call is in the log within a second, without anything that was sent or came back`() async throws {
        try await withScratchFolder { scratch in
            let clock = TestClock()
            let store = try Bench.store(in: scratch, clock: clock)
            let id = try #require(EndpointID("shop-iphone"))
            let use = EndpointCallEvent(of: id, subject: SanitizedText("tap\u{1B}"), bytes: 120, outcome: "answered")

            store.note(use, by: Bench.owner, from: Bench.socket)
            store.note(use, by: .grant("abcdefgh"), from: Bench.loopback)
            #expect(try Bench.audit(in: scratch).isEmpty)
            #expect(await store.sweep().pause <= .seconds(1))
            clock.pass(1.1)
            _ = await store.sweep()

            let events = try Bench.audit(in: scratch).map(\.event)
            #expect(events.map(\.action) == [.called, .called])
            #expect(events[0].endpoint == id)
            #expect(events[0].subject?.text == "tap\u{FFFD}")
            #expect(events[0].bytes == 120)
            #expect(events[0].detail == "answered")
            #expect(events[1].who == .grant("abcdefgh"))
            #expect(try await store.verifyAudit().broken == nil)
        }
    }

    @Test func `calls that are not in the log yet are there when the store is closed`() async throws {
        try await withScratchFolder { scratch in
            let store = try Bench.store(in: scratch)
            let id = try #require(EndpointID("shop-iphone"))
            let use = EndpointCallEvent(of: id, subject: SanitizedText("tap"), bytes: 1, outcome: "answered")

            store.note(use, by: Bench.owner, from: Bench.socket)
            try await store.close()

            #expect(try Bench.audit(in: scratch).map(\.event.action) == [.called])
        }
    }
}
