import FoundationEssentials
import Model
import Testing

@testable import Registry

/// The IDs of apps that choose their own names: no such ID is a short name of another endpoint.
@Suite struct NewIDTests {
    private let now = Date(timeIntervalSince1970: 1_000)
    private static let udid: UDID = {
        guard let udid = UDID("00008101-000123456789ABCD") else { preconditionFailure("the sample is a UDID") }
        return udid
    }()
    private let cabled = Seen.usb("com.example.shop", udid: udid)

    private func registered(_ app: String, on device: String, grant: String = "g7f3a") -> Sighting {
        Sighting(
            id: Sighting.ID(source: .registration, key: "\(grant)/mcp/\(app)/\(device.lowercased())"),
            kind: .mcp,
            app: SanitizedText(app),
            appIsBundleID: true,
            name: SanitizedText(app),
            host: SanitizedText(device),
            routes: [.network(NetworkRoute(address: "10.0.0.2", port: 9_008, registration: "r1"))]
        )
    }

    /// Returns the ID of the sighting after a phone with the app `shop` and the name `Demo iPhone`.
    private func id(of sighting: Sighting, in table: EndpointTable? = nil) throws -> String {
        var table = table ?? EndpointTable()
        _ = table.setDeviceNames([Self.udid: SanitizedText("Demo iPhone")])
        _ = table.apply(.seen(cabled), at: now)
        _ = table.apply(.seen(sighting), at: now)
        #expect(table.endpoint(seenAs: cabled.id)?.id.text == "shop-demo-iphone")
        return try #require(table.endpoint(seenAs: sighting.id)).id.text
    }

    @Test(arguments: [
        ("shop", "日本", "shop-g7f3a"), ("com.example.shop-d", "日本", "shop-d-g7f3a"), ("日本", "shop", "mcp-shop"),
    ])
    func `the ID of a registered app has an app and a place, also without ASCII letters`(
        app: String,
        device: String,
        expected: String
    ) throws {
        #expect(try id(of: registered(app, on: device)) == expected)
    }

    @Test(arguments: [("mcp-dem", "-.local", "mcp-dem-host"), ("日本", "shop.local", "appreveal-shop")])
    func `the ID of an advertised app has an app and a place, also without ASCII letters`(
        app: String,
        host: String,
        expected: String
    ) throws {
        #expect(try id(of: Seen.network(app, host: host)) == expected)
    }

    @Test(arguments: ["demo", "d", "demo iphon"])
    func `an app that registers itself gets no ID with which the ID of another begins`(device: String) throws {
        let slug = device.replacing(" ", with: "-")
        #expect(try id(of: registered("shop", on: device)) == "shop-\(slug)-2")
        #expect(try id(of: Seen.network("shop", host: "\(device).local")) == "shop-\(slug)-2")
    }

    @Test func `the beginning of a removed endpoint's ID is not assigned either`() throws {
        var table = EndpointTable()
        let mac = Seen.network(host: "mac-mini.local")
        _ = table.apply(.seen(mac), at: now)
        _ = table.apply(.lost(mac.id), at: now)
        _ = try table.removeUnseen(try #require(table.endpoints.first).id)
        #expect(try id(of: registered("shop", on: "mac"), in: table) == "shop-mac-2")
    }

    @Test func `an app gets its own ID back after another ID began with it`() throws {
        var table = EndpointTable()
        let mac = Seen.network(host: "mac.local")
        _ = table.apply(.seen(mac), at: now)
        _ = table.apply(.lost(mac.id), at: now)
        _ = try table.removeUnseen(try #require(table.endpoints.first).id)
        _ = table.apply(.seen(Seen.network(host: "mac-mini.local")), at: now)
        #expect(try id(of: mac, in: table) == "shop-mac")
    }

    @Test func `an owner and a phone on the cable may have an ID with which another begins`() throws {
        #expect(try id(of: Seen.config("shop")) == "shop")
        var table = EndpointTable()
        _ = table.apply(.seen(Seen.network(host: "demo-iphone-x.local")), at: now)
        #expect(try id(of: Seen.config("shop-demo"), in: table) == "shop-demo")
    }

    @Test func `the ID of a phone's app may begin with the ID of an app that registered before`() throws {
        var table = EndpointTable()
        let early = registered("shop", on: "demo")
        _ = table.apply(.seen(early), at: now)
        #expect(try id(of: early, in: table) == "shop-demo")
    }

    @Test func `a stored ID stays, whatever it is`() throws {
        var table = EndpointTable()
        let mac = Seen.network(host: "mac.local")
        _ = table.apply(.seen(mac), at: now)
        let stored = try #require(table.records.first)
        let bare = try #require(EndpointID("shop"))
        let endpoint = Endpoint(
            id: bare,
            kind: stored.endpoint.kind,
            app: stored.endpoint.app,
            name: stored.endpoint.name,
            state: .offline,
            approval: .pending,
            firstSeenAt: now,
            lastSeenAt: now
        )
        let record = PersistedEndpoint(endpoint: endpoint, source: .bonjour, keys: stored.keys, host: stored.host)
        #expect(try id(of: mac, in: EndpointTable(records: [record])) == "shop")
    }
}
