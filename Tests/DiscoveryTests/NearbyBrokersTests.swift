import Model
import Testing

@testable import Discovery

/// The list of the brokers that advertise themselves.
@Suite struct NearbyBrokersTests {
    private static let pin = "ABCDEFGHIJKLMNOP"

    private static func advert(
        _ name: String = "patchbay-lab",
        interface: String = "eth0",
        address: String = "10.0.0.3",
        kind: EndpointKind = NearbyBrokers.kind,
        txt: [String] = ["v=1", "id=ABCDEFGHIJKLMNOP", "pair=open"]
    ) -> Sighting {
        Sighting(
            id: Sighting.ID(source: .bonjour, key: "\(interface)/\(name)"),
            kind: kind,
            app: SanitizedText(name),
            appIsBundleID: false,
            name: SanitizedText(name),
            machine: SanitizedText("lab.local"),
            txt: TXTRecord(items: txt.map { Array($0.utf8) }),
            routes: [
                .network(
                    NetworkRoute(
                        address: address,
                        port: 7_283,
                        interface: interface,
                        machine: SanitizedText("lab.local")
                    )
                )
            ],
            port: 7_283
        )
    }

    @Test func `a broker on two interfaces is listed once with both addresses`() async {
        let brokers = NearbyBrokers()
        #expect(await brokers.apply(.seen(Self.advert())))
        #expect(await brokers.apply(.seen(Self.advert(interface: "wlan0", address: "fe80::1"))))
        let expected = NearbyBroker(
            id: SanitizedText(Self.pin),
            name: SanitizedText("patchbay-lab"),
            machine: SanitizedText("lab.local"),
            addresses: ["10.0.0.3", "fe80::1%wlan0"],
            port: 7_283,
            pair: .open
        )
        #expect(await brokers.brokers() == [expected])
    }

    @Test func `the advert of a broker is no endpoint, and other adverts are no brokers`() async {
        let brokers = NearbyBrokers()
        let app = Self.advert(kind: .appreveal)
        #expect(await brokers.apply(.seen(app)) == false)
        #expect(await brokers.apply(.lost(app.id)) == false)
        #expect(await brokers.brokers().isEmpty)
    }

    @Test func `a broker is gone after its goodbye, or if Avahi does not report it again`() async {
        let brokers = NearbyBrokers()
        _ = await brokers.apply(.seen(Self.advert()))
        #expect(await brokers.apply(.lost(Self.advert().id)))
        #expect(await brokers.brokers().isEmpty)

        _ = await brokers.apply(.seen(Self.advert("a")))
        _ = await brokers.apply(.seen(Self.advert("b")))
        #expect(await brokers.apply(.sourceLost(.bonjour)) == false)
        #expect(await brokers.brokers().count == 2)
        _ = await brokers.apply(.seen(Self.advert("b")))
        #expect(await brokers.apply(.sourceReconciled(.bonjour)) == false)
        #expect(await brokers.brokers().map(\.name.text) == ["b"])
    }

    @Test(arguments: [
        ["id=ABCDEFGHIJKLMNO"], ["id=ABCDEFGHIJKLMNO\u{1B}"], ["id=abcdefghijklmnop"], ["id=ABCDEFGHIJKLMNOPQ"], [],
    ])
    func `an advert with a malformed pin has no ID and closed pairing`(txt: [String]) async {
        let brokers = NearbyBrokers()
        _ = await brokers.apply(.seen(Self.advert(txt: txt)))
        #expect(await brokers.brokers().map(\.id.text) == [""])
        #expect(await brokers.brokers().map(\.pair) == [.closed])
    }

    @Test func `a flood of adverts is limited`() async {
        let brokers = NearbyBrokers()
        for number in 0..<300 { _ = await brokers.apply(.seen(Self.advert("b\(number)"))) }
        #expect(await brokers.brokers().count == NearbyBrokers.limit)
    }

    @Test func `the advertised record has the beginning of the pin and no secret`() throws {
        let pin = try #require(KeyPin(digest: Array(0..<32)))
        let txt = BrokerAdvertisement.txt(pin: pin, pair: .closed)
        #expect(txt.items.map { String(decoding: $0, as: UTF8.self) } == ["v=1", "id=AAAQEAYEAUDAOCAJ", "pair=closed"])
        #expect(BrokerAdvertisement.id(in: txt).text == "\(pin)".prefix(16))
        #expect(BrokerAdvertisement.pairState(in: txt) == .closed && txt.validationError == nil)
    }
}
