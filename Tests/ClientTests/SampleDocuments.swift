import FoundationEssentials
import Model

/// One sample of each document.
enum SampleDocuments {
    static let date = Date(timeIntervalSince1970: 1_795_000_000.25)
    static let udid: UDID = {
        guard let udid = UDID("00008101-000123456789ABCD") else { preconditionFailure("the sample is a UDID") }
        return udid
    }()

    static let endpoint = Endpoint(
        id: EndpointID(app: SanitizedText("com.example.shop"), location: "Test iPhone"),
        kind: .appreveal,
        app: SanitizedText("com.example.shop"),
        name: SanitizedText("Shop"),
        location: Endpoint.Location(udid: udid),
        state: .online,
        approval: .approved,
        routes: [EndpointRoute(.usb(USBRoute(udid: udid, port: 9876)))],
        txt: TXTRecord(items: [Array("auth=none".utf8)]),
        sources: [.usbmuxd],
        firstSeenAt: date,
        lastSeenAt: date
    )

    static let tunnel = Tunnel(
        id: "t3",
        spec: TunnelSpec(local: .tcp(host: nil, port: 0), target: .device(udid: udid, port: 22)),
        owner: 1_000,
        state: .waiting(reason: "the phone is not plugged in"),
        listenAddresses: [.tcp(host: "127.0.0.1", port: 43211)],
        createdAt: date
    )

    static let advertisement = Advertisement(
        id: "a1",
        spec: AdvertisementSpec(name: "Shop", type: .appreveal, port: 8080),
        state: .published,
        publishedName: SanitizedText("Shop #2")
    )

    static func json(_ value: some Encodable) throws -> String {
        String(decoding: try JSONCoding.encoder().encode(value), as: UTF8.self)
    }
}
