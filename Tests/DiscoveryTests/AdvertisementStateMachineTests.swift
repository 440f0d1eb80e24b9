import Model
import Testing

@testable import Discovery

@Suite struct AdvertisementStateMachineTests {
    private let now = ContinuousClock.now

    private func makeAdvertisement(_ name: String = "Demo") -> AdvertisementStateMachine {
        AdvertisementStateMachine(
            AdvertisementSpec(name: name, type: .debug, port: 1),
            alternative: AvahiString.alternative
        )
    }

    private func txt(_ items: String...) -> TXTRecord { TXTRecord(items: items.map { Array($0.utf8) }) }

    @Test func `an advertisement is published once`() {
        var advertisement = makeAdvertisement()
        #expect(advertisement.nextAction(now: now) == .publish)

        advertisement.committed(now: now)
        #expect(advertisement.nextAction(now: now) == nil && !advertisement.isStable)

        advertisement.established()
        #expect(
            advertisement.nextAction(now: now) == nil && advertisement.isStable && advertisement.phase == .published
        )
    }

    @Test func `both kinds of collision try the next name, and a restart of avahi-daemon keeps the found name`() {
        var advertisement = makeAdvertisement()
        advertisement.collided()
        #expect(advertisement.name == "Demo #2" && advertisement.nextAction(now: now) == .publish)

        advertisement.committed(now: now)
        advertisement.collided()
        #expect(advertisement.name == "Demo #3" && advertisement.nextAction(now: now) == .publish)

        advertisement.committed(now: now)
        advertisement.established()
        advertisement.withdrawn()
        #expect(advertisement.name == "Demo #3" && advertisement.nextAction(now: now) == .publish)
    }

    @Test func `an advertisement fails after 20 renames and gives the reason`() {
        var advertisement = makeAdvertisement()
        for _ in 0...AdvertisementStateMachine.renameLimit { advertisement.collided() }

        guard case .failed(let reason) = advertisement.phase else {
            Issue.record("not failed: \(advertisement.phase)")
            return
        }
        #expect(reason.contains("20"))
        #expect(advertisement.nextAction(now: now) == nil && advertisement.isStable)
    }

    @Test func `TXT changes wait until a second after the commit and are combined`() {
        var advertisement = makeAdvertisement()
        advertisement.setTXT(txt("v=1"))
        advertisement.committed(now: now)
        advertisement.established()
        advertisement.setTXT(txt("v=2"))
        advertisement.setTXT(txt("v=3"))

        #expect(advertisement.nextAction(now: now + .milliseconds(500)) == nil && !advertisement.isStable)
        #expect(advertisement.deadline == now + .seconds(1))
        #expect(advertisement.nextAction(now: now + .seconds(1)) == .updateTXT)

        advertisement.txtUpdated(now: now + .seconds(1))
        #expect(
            advertisement.isStable && advertisement.deadline == nil
                && advertisement.nextAction(now: now + .seconds(9)) == nil
        )
    }

    @Test func `a TXT change during registration is sent afterwards`() {
        var advertisement = makeAdvertisement()
        advertisement.committed(now: now)
        advertisement.setTXT(txt("v=2"))
        #expect(advertisement.nextAction(now: now + .seconds(2)) == nil)

        advertisement.established()
        #expect(advertisement.nextAction(now: now + .seconds(2)) == .updateTXT)
    }

    @Test func `a failed advertisement is published again after avahi-daemon restarts`() {
        var advertisement = makeAdvertisement()
        advertisement.failed("Avahi returned an error: no")
        #expect(advertisement.nextAction(now: now) == nil)

        advertisement.withdrawn()
        #expect(advertisement.nextAction(now: now) == .publish)
    }

    @Test func `a name of 63 bytes is truncated between characters for the next name`() {
        let name = String(repeating: "é", count: 31) + "x"

        let next = AvahiString.alternative(to: name)

        #expect(next.hasSuffix(" #2"))
        #expect(next.utf8.count <= SanitizedText.nameLimit)
        #expect(!next.contains("\u{FFFD}"))
    }

    @Test func `TXT strings are passed in reverse order, because the Avahi calls reverse them again`() {
        let record = txt("k1=a", "k2", "k3=")

        let lent = AvahiString.withList(record) { AvahiString.items(of: $0) }

        #expect(lent == record.items.reversed())
        #expect(AvahiString.withList(TXTRecord()) { $0 } == nil)
    }
}
