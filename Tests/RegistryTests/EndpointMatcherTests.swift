import FoundationEssentials
import Model
import Samples
import Testing

@testable import Registry

@Suite struct EndpointMatcherTests {
    private let phone = UDID.sample
    private let otherPhone: UDID = "0123456789abcdef0123456789abcdef01234567"

    /// Lists each sighting as an endpoint of its own.
    private func matcher(listing sightings: Sighting...) -> EndpointMatcher {
        var (index, known) = (EndpointIndex(), SightingIndex())
        for sighting in sightings {
            known.insert(sighting)
            let id = index.add(for: sighting, on: ServerKey(of: sighting), at: now)
            index.update(id) { $0.launch = sighting.id.source == .usbmuxd ? sighting.launchID : nil }
        }
        return EndpointMatcher(endpoints: index, sightings: known, trusts: [:])
    }

    private func match(_ sighting: Sighting, in matcher: EndpointMatcher, from former: EndpointID? = nil) -> String? {
        matcher.endpoint(for: sighting, on: ServerKey(of: sighting), movedFrom: former)?.text
    }

    @Test func `an advertisement joins the one USB endpoint with its launch and port`() throws {
        let cable = Seen.usb("com.example.shop", udid: phone, launchID: "b1")
        let id = "shop-phone-5e6f70"

        let one = matcher(listing: cable)
        #expect(match(Seen.network(launchID: "b1"), in: one) == id)
        #expect(match(Seen.network(launchID: "b2"), in: one) == nil)
        #expect(match(Seen.network(port: 5_000, launchID: "b1"), in: one) == nil)
        #expect(match(Seen.network("com.example.bank", launchID: "b1"), in: one) == nil)
        #expect(match(Seen.network(), in: one) == nil)

        let two = matcher(listing: cable, Seen.usb("com.example.shop", udid: otherPhone, launchID: "b1"))
        #expect(match(Seen.network(launchID: "b1"), in: two) == nil)
    }

    @Test func `an advertisement that moves keeps its endpoint only if the rest of the endpoint is the same service`() {
        let old = Seen.network()
        let one = matcher(listing: old)

        #expect(match(Seen.network(port: 5_000), in: one) == nil)
        #expect(match(Seen.network(port: 5_000), in: one, from: EndpointID("shop-iphone")) == "shop-iphone")
        let renamed = Seen.network(port: 5_000, name: "AppReveal-com.example.shop (2)")
        #expect(match(renamed, in: one, from: EndpointID("shop-iphone")) == nil)
    }

    @Test func `a USB port without a name is superseded by the app that it turns out to be`() throws {
        let named = Seen.usb("com.example.shop", udid: phone)
        let (port, other) = (Seen.usb(udid: phone, kind: .tcp), Seen.usb(udid: phone, port: 4_001))
        let one = matcher(listing: port, other)

        #expect(one.superseded(by: named, on: ServerKey(of: named)).isEmpty, "its server is still another one")
        let server = ServerKey(of: port)
        #expect(one.superseded(by: named, on: server).map(\.text) == ["tcp-phone-5e6f70"])
        #expect(one.superseded(by: Seen.network(), on: server).isEmpty)
    }

    @Test func `a network server belongs to a USB endpoint only while it reports the endpoint's launch`() throws {
        let cable = Seen.usb(udid: phone, launchID: "b1")
        let advert = Seen.network(launchID: "b1")
        let id: EndpointID = "appreveal-phone-5e6f70"
        let one = matcher(listing: cable, advert)

        #expect(one.belongs(ServerKey(of: advert), to: id))
        let relaunched = matcher(listing: Seen.usb(udid: phone, launchID: "b2"), advert)
        #expect(!relaunched.belongs(ServerKey(of: advert), to: id))
        #expect(relaunched.belongs(ServerKey(of: cable), to: id))
    }
}
