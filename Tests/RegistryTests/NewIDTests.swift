import FoundationEssentials
import Model
import Samples
import Testing

@testable import Registry

/// The IDs of apps that choose their own names: no such ID is a short name of another endpoint.
@Suite struct NewIDTests {
    private let cabled = Seen.usb("com.example.shop", udid: .sample)

    /// Returns the ID of the sighting after a phone with the app `shop` and the name `Demo iPhone`.
    private func id(of sighting: Sighting, in table: EndpointTable? = nil) throws -> String {
        var table = table ?? EndpointTable()
        _ = table.setDeviceNames([UDID.sample: SanitizedText("Demo iPhone")])
        table.see(cabled, sighting)
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
    ) throws { #expect(try id(of: Seen.registered(app, on: device)) == expected) }

    @Test(arguments: [("mcp-dem", "-.local", "mcp-dem-host"), ("日本", "shop.local", "appreveal-shop")])
    func `the ID of an advertised app has an app and a place, also without ASCII letters`(
        app: String,
        machine: String,
        expected: String
    ) throws { #expect(try id(of: Seen.network(app, machine: machine)) == expected) }

    @Test(arguments: ["demo", "d", "demo iphon"])
    func `an app that registers itself gets no ID with which the ID of another begins`(device: String) throws {
        let slug = device.replacing(" ", with: "-")
        #expect(try id(of: Seen.registered("shop", on: device)) == "shop-\(slug)-2")
        #expect(try id(of: Seen.network("shop", machine: "\(device).local")) == "shop-\(slug)-2")
    }

    @Test func `the beginning of a removed endpoint's ID is not assigned either`() throws {
        var table = EndpointTable()
        let mac = Seen.network(machine: "mac-mini.local")
        table.see(mac)
        table.lose(mac.id)
        _ = try table.removeUnseen(try #require(table.endpoints.first).id)
        #expect(try id(of: Seen.registered("shop", on: "mac"), in: table) == "shop-mac-2")
    }

    @Test func `an app gets its own ID back after another ID began with it`() throws {
        var table = EndpointTable()
        let mac = Seen.network(machine: "mac.local")
        table.see(mac)
        table.lose(mac.id)
        _ = try table.removeUnseen(try #require(table.endpoints.first).id)
        table.see(Seen.network(machine: "mac-mini.local"))
        #expect(try id(of: mac, in: table) == "shop-mac")
    }

    @Test func `an owner and a phone on the cable may have an ID with which another begins`() throws {
        #expect(try id(of: Seen.config("shop")) == "shop")
        let table = EndpointTable(Seen.network(machine: "demo-iphone-x.local"))
        #expect(try id(of: Seen.config("shop-demo"), in: table) == "shop-demo")
    }

    @Test func `the ID of a phone's app may begin with the ID of an app that registered before`() throws {
        var table = EndpointTable()
        let early = Seen.registered("shop", on: "demo")
        table.see(early)
        #expect(try id(of: early, in: table) == "shop-demo")
    }

    @Test func `a stored ID stays, whatever it is`() throws {
        var table = EndpointTable()
        let mac = Seen.network(machine: "mac.local")
        table.see(mac)
        let stored = try #require(table.records.first)
        let bare: EndpointID = "shop"
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
        let record = PersistedEndpoint(endpoint: endpoint, source: .bonjour, keys: stored.keys, machine: stored.machine)
        #expect(try id(of: mac, in: EndpointTable(records: [record])) == "shop")
    }
}
