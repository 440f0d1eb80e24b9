import Model
import Testing

@testable import Discovery

@Suite struct AdvertisementStateMachineTests {
    private let now = ContinuousClock.now

    private func makeAdvert(_ name: String = "Demo") -> AdvertisementStateMachine {
        AdvertisementStateMachine(
            AdvertisementSpec(name: name, type: .debug, port: 1),
            alternative: AvahiString.alternative
        )
    }

    private func txt(_ items: String...) -> TXTRecord { TXTRecord(items: items.map { Array($0.utf8) }) }

    @Test func `it is published once`() {
        var advert = makeAdvert()
        #expect(advert.step(now: now) == .publish)

        advert.committed(now: now)
        #expect(advert.step(now: now) == nil && !advert.isSettled)

        advert.established()
        #expect(advert.step(now: now) == nil && advert.isSettled && advert.phase == .published)
    }

    @Test func `both kinds of collision try the next name, and the name found is kept over a restart`() {
        var advert = makeAdvert()
        advert.collided()
        #expect(advert.name == "Demo #2" && advert.step(now: now) == .publish)

        advert.committed(now: now)
        advert.collided()
        #expect(advert.name == "Demo #3" && advert.step(now: now) == .publish)

        advert.committed(now: now)
        advert.established()
        advert.withdrawn()
        #expect(advert.name == "Demo #3" && advert.step(now: now) == .publish)
    }

    @Test func `after 20 names it fails and says so`() {
        var advert = makeAdvert()
        for _ in 0...AdvertisementStateMachine.renameLimit { advert.collided() }

        guard case .failed(let reason) = advert.phase else {
            Issue.record("it goes on: \(advert.phase)")
            return
        }
        #expect(reason.contains("20"))
        #expect(advert.step(now: now) == nil && advert.isSettled)
    }

    @Test func `a changed TXT record waits until a second after the commit, and several are one`() {
        var advert = makeAdvert()
        advert.want(txt("v=1"))
        advert.committed(now: now)
        advert.established()
        advert.want(txt("v=2"))
        advert.want(txt("v=3"))

        #expect(advert.step(now: now + .milliseconds(500)) == nil && !advert.isSettled)
        #expect(advert.deadline == now + .seconds(1))
        #expect(advert.step(now: now + .seconds(1)) == .updateText)

        advert.textUpdated(now: now + .seconds(1))
        #expect(advert.isSettled && advert.deadline == nil && advert.step(now: now + .seconds(9)) == nil)
    }

    @Test func `a TXT record changed while it registers is sent afterwards`() {
        var advert = makeAdvert()
        advert.committed(now: now)
        advert.want(txt("v=2"))
        #expect(advert.step(now: now + .seconds(2)) == nil)

        advert.established()
        #expect(advert.step(now: now + .seconds(2)) == .updateText)
    }

    @Test func `a daemon that comes back gets what failed as well`() {
        var advert = makeAdvert()
        advert.failed("Avahi says: no")
        #expect(advert.step(now: now) == nil)

        advert.withdrawn()
        #expect(advert.step(now: now) == .publish)
    }

    @Test func `a name of 63 bytes is renamed at a character's border`() {
        let name = String(repeating: "é", count: 31) + "x"

        let next = AvahiString.alternative(to: name)

        #expect(next.hasSuffix(" #2"))
        #expect(next.utf8.count <= SanitizedText.nameLimit)
        #expect(!next.contains("\u{FFFD}"))
    }

    @Test func `strings are lent in an order that the calls turn round`() {
        let record = txt("k1=a", "k2", "k3=")

        let lent = AvahiString.withList(record) { AvahiString.items(of: $0) }

        #expect(lent == record.items.reversed())
        #expect(AvahiString.withList(TXTRecord()) { $0 } == nil)
    }
}
