import FoundationEssentials
import Model
import Samples
import TestSupport
import Testing

@testable import AccessControl

@Suite(.scratchFolder) struct EndpointCallEventTests {
    private let scratch = ScratchFolder.current

    private static func endpoint(_ routes: [EndpointRoute]) -> Endpoint {
        var endpoint = Endpoint.sample("shop-iphone", approval: .pending)
        endpoint.routes = routes
        return endpoint
    }

    private static let network = EndpointRoute(.network(port: 5_000, interface: "wlan0", machine: "iphone.local"))
    private static func usb(boot: String = "1") -> EndpointRoute {
        EndpointRoute(.usb(port: 5_000), launchID: SanitizedText(boot))
    }

    @Test func `endpoint access has the approved routes with the secret for this launch`() async throws {
        let store = try Fixture.store(in: scratch)
        let both = Self.endpoint([Self.usb(), Self.network])
        try await store.secrets.set(EndpointSecret("abc"), of: both)

        let now = store.secrets.access(to: both)
        let later = store.secrets.access(to: Self.endpoint([Self.usb(boot: "2")]))

        #expect(now.routes.map(\.route) == [Self.usb().route])
        #expect(now.routes.first?.secret?.reveal() == "abc")
        #expect(!now.isUnapproved && !now.isSecretOutdated)
        #expect(now.withoutSecrets.routes.allSatisfy { $0.secret == nil })
        #expect(later.routes.first?.secret == nil)
        #expect(later.isSecretOutdated)
    }

    @Test func `a secret set before the app is discovered at its new port applies to that launch`() async throws {
        func shop(_ port: UInt16) throws -> Endpoint {
            Self.endpoint([EndpointRoute(.network(NetworkRoute(address: "192.168.1.20", port: port)))])
        }
        let store = try Fixture.store(in: scratch)
        try await store.secrets.set(EndpointSecret("new"), of: shop(5_000), on: 6_000)
        try await store.close()
        let again = try Fixture.store(in: scratch)

        #expect(again.secrets.access(to: try shop(6_000)).routes.first?.secret?.reveal() == "new")
        #expect(again.secrets.isUsable(for: try shop(6_000)))
        #expect(again.secrets.access(to: try shop(7_000)).routes.first?.secret == nil)
        #expect(again.secrets.access(to: try shop(7_000)).isSecretOutdated)
    }

    @Test func `an endpoint without approved routes is unapproved, one without routes is not`() async throws {
        let store = try Fixture.store(in: scratch)

        let discovered = store.secrets.access(to: Self.endpoint([Self.network]))
        let away = store.secrets.access(to: Self.endpoint([]))

        #expect(discovered.isUnapproved && discovered.routes.isEmpty)
        #expect(!away.isUnapproved && away.routes.isEmpty)
    }

    @Test func `approvals, secrets and their removal are published`() async throws {
        let store = try Fixture.store(in: scratch)
        let lan = Self.endpoint([Self.network])
        var changes = store.approvals.changes().makeAsyncIterator()

        try await store.approvals.approve(lan)
        #expect(await changes.next() == lan.id)
        try await store.secrets.set(EndpointSecret("abc"), of: lan)
        #expect(await changes.next() == lan.id)
        try await store.secrets.delete(of: lan.id, by: Fixture.owner, from: Fixture.socket)
        #expect(await changes.next() == lan.id)
    }

    @Test func `a call is logged within a second, without arguments and results`() async throws {
        let clock = TestClock()
        let store = try Fixture.store(in: scratch, clock: clock)
        let id: EndpointID = "shop-iphone"
        let use = EndpointCallEvent(
            of: id,
            subject: SanitizedText("tap\u{1B}"),
            bytes: 120,
            outcome: "answered",
            trace: "0af7"
        )

        store.auditCall(use, by: Fixture.owner, from: Fixture.socket)
        store.auditCall(use, by: .grant("abcdefgh"), from: Fixture.loopback)
        #expect(try Fixture.audit(in: scratch).isEmpty)
        #expect(await ExpirationService(of: store).expire().pause <= .seconds(1))
        clock.pass(1.1)
        _ = await ExpirationService(of: store).expire()

        let events = try Fixture.audit(in: scratch).map(\.event)
        #expect(events.map(\.action) == [.called, .called])
        #expect(events[0].endpoint == id)
        #expect(events[0].subject?.text == "tap\u{FFFD}")
        #expect(events[0].bytes == 120)
        #expect(events[0].detail == "answered" && events[0].trace == "0af7")
        #expect(events[1].who == .grant("abcdefgh"))
        #expect(try await store.verifyAudit().firstInvalidEntry == nil)
    }

    @Test func `closing the store writes the buffered calls to the log`() async throws {
        let store = try Fixture.store(in: scratch)
        let id: EndpointID = "shop-iphone"
        let use = EndpointCallEvent(of: id, subject: SanitizedText("tap"), bytes: 1, outcome: "answered")

        store.auditCall(use, by: Fixture.owner, from: Fixture.socket)
        try await store.close()

        #expect(try Fixture.audit(in: scratch).map(\.event.action) == [.called])
    }
}
