import FoundationEssentials
import Model
import Samples

/// One sample of each document.
enum SampleDocuments {
    static let date = Date(timeIntervalSince1970: 1_795_000_000.25)
    static let udid: UDID = "00008101-000123456789ABCD"

    static let endpoint = Endpoint.sample(
        "shop-test-iphone",
        location: Endpoint.Location(udid: udid),
        routes: [.usb(udid, port: 9876)],
        txt: TXTRecord(items: [Array("auth=none".utf8)]),
        sources: [.usbmuxd],
        firstSeenAt: date,
        lastSeenAt: date
    )

    static let tunnel = Tunnel.sample(
        "t3",
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
