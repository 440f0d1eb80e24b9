import FoundationEssentials
import Model
import Samples
import Testing

@testable import Discovery

@Suite struct ReadvertisementTests {
    private let phone = UDID("00008030-001A2B3C4D5E6F70")
    private let date = Date(timeIntervalSince1970: 1_000)

    private func endpoint(
        _ app: String = "com.example.shop",
        id: String = "shop-phone",
        kind: EndpointKind = .appreveal,
        launchID: String? = "b1",
        routes: [EndpointRoute]? = nil,
        state: Endpoint.State = .online,
        approval: Endpoint.Approval = .approved,
        txt: [String] = []
    ) throws -> Endpoint {
        let isBundleID = app.contains(".")
        let usb = EndpointRoute(
            .usb(USBRoute(udid: phone, port: 9_876)),
            app: SanitizedText(app),
            appIsBundleID: isBundleID,
            approval: approval
        )
        return Endpoint(
            id: try #require(EndpointID(id)),
            kind: kind,
            app: SanitizedText(app),
            name: SanitizedText(app),
            version: SanitizedText("3.2.0"),
            state: state,
            approval: approval,
            routes: routes ?? [usb],
            txt: TXTRecord(items: txt.map { Array($0.utf8) }),
            sources: [.usbmuxd],
            launchID: launchID.map { SanitizedText($0) },
            firstSeenAt: date,
            lastSeenAt: date
        )
    }

    private var wifi: EndpointRoute {
        EndpointRoute(.network(NetworkRoute(address: "10.0.0.5", port: 9_876, machine: SanitizedText("iphone.local"))))
    }

    private func items(_ service: Readvertisement?) -> [String] {
        (service?.txt.items ?? []).map { String(decoding: $0, as: UTF8.self) }
    }

    @Test func `AppReveal on a cable is announced under AppReveal's name, with its facts and the mark of a broker`()
        throws
    {
        let service = try #require(Readvertisement.all(for: [endpoint()]).first)

        #expect(service.name == "AppReveal-com.example.shop" && service.type == .appreveal)
        #expect(items(service) == ["bundleId=com.example.shop", "version=3.2.0", "boot=b1", "via=patchbay"])
        #expect(BrokerTXTMarker.isSet(on: service.txt))
    }

    @Test func `the app's own TXT record is kept without the facts of an earlier launch`() throws {
        let txt = ["bundleId=com.example.shop", "transport=streamable-http", "boot=old", "lan=available", "VIA=me"]
        let service = Readvertisement.all(for: [try endpoint(launchID: nil, txt: txt)]).first

        #expect(items(service).contains("transport=streamable-http"))
        #expect(BrokerTXTMarker.isSet(on: try #require(service).txt))
        #expect(!items(service).contains { $0.hasPrefix("boot") || $0.hasPrefix("lan") || $0 == "VIA=me" })
    }

    @Test func `a TXT record that is too large for the mark is replaced by the known facts`() throws {
        let full = (0..<32).map { "key\($0)=\(String(repeating: "x", count: 30))" }
        let service = try #require(Readvertisement.all(for: [endpoint(txt: full)]).first)

        #expect(service.txt.validationError == nil)
        #expect(items(service) == ["bundleId=com.example.shop", "version=3.2.0", "boot=b1", "via=patchbay"])
    }

    @Test(arguments: [(EndpointKind.appreveal, "_appreveal._tcp"), (.appDebug, "_debug._tcp"), (.debug, "_debug._tcp")])
    func `a kind has its service type`(kind: EndpointKind, type: String) throws {
        #expect(Readvertisement.all(for: [try endpoint(kind: kind)]).map(\.type.text) == [type])
    }

    @Test func `an app without a name is announced under its ID`() throws {
        #expect(Readvertisement.all(for: [try endpoint("")]).map(\.name) == ["shop-phone"])
    }

    @Test func `other kinds, absent apps, unapproved routes and configured addresses are not announced`() throws {
        let configured = EndpointRoute(.network(NetworkRoute(address: "127.0.0.1", port: 1)))
        let endpoints = [
            try endpoint(kind: .tcp), try endpoint(kind: .mcp), try endpoint(state: .offline),
            try endpoint(state: .blocked), try endpoint(approval: .changed), try endpoint(routes: []),
            try endpoint(routes: [configured]), try endpoint(routes: [wifi]),
        ]

        #expect(Readvertisement.all(for: endpoints).isEmpty)
    }

    @Test func `an app with a Wi-Fi route of the same launch is not announced, in one endpoint or in two`() throws {
        let usb = try endpoint().routes[0]
        #expect(Readvertisement.all(for: [try endpoint(routes: [usb, wifi])]).isEmpty)

        let wireless = try endpoint(id: "shop-iphone", routes: [wifi])
        #expect(Readvertisement.all(for: [try endpoint(), wireless]).isEmpty)
        let relaunched = try endpoint(id: "shop-iphone", launchID: "b2", routes: [wifi])
        #expect(Readvertisement.all(for: [try endpoint(), relaunched]).map(\.endpoint.text) == ["shop-phone"])
    }
}
