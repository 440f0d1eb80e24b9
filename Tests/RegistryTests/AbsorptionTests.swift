import FoundationEssentials
import Model
import Testing

@testable import Registry

/// Apps that report their name late, or not at every launch.
@Suite struct AbsorptionTests {
    private let now = Date(timeIntervalSince1970: 1_000)
    private let nameless = EndpointID(app: SanitizedText("appreveal"), location: "phone-5e6f70")

    @Test func `an app that reports its name late is one endpoint, and its first ID stays an alias`() throws {
        let phone = try #require(UDID("00008030-001A2B3C4D5E6F70"))
        var table = EndpointTable()
        _ = table.apply(.seen(Seen.usb(udid: phone)), at: now)
        #expect(table.endpoints.map(\.id) == [nameless])

        let changes = table.apply(.seen(Seen.usb("com.example.shop", udid: phone)), at: now)

        #expect(table.endpoints.map(\.id.text) == ["shop-phone-5e6f70"])
        #expect(changes.count == 2)
        #expect(table[nameless]?.id.text == "shop-phone-5e6f70")
        #expect(EndpointTable(records: table.records)[nameless]?.id.text == "shop-phone-5e6f70")
    }

    @Test func `a relaunch that starts without a name ends as the known endpoint`() throws {
        let phone = try #require(UDID("00008030-001A2B3C4D5E6F70"))
        var table = EndpointTable()
        let app = Seen.usb("com.example.shop", udid: phone)
        for sighting in [app, Seen.usb(udid: phone), app] {
            _ = table.apply(.seen(sighting), at: now)
            if sighting != app { #expect(table.endpoints.count == 2) }
            _ = table.apply(.lost(sighting.id), at: now)
        }

        _ = table.apply(.seen(app), at: now)

        #expect(table.endpoints.map(\.id.text) == ["shop-phone-5e6f70"])
        #expect(table.endpoints.first?.state == .online)
    }

    @Test func `a port that is later identified as a debug server leaves no second endpoint`() throws {
        let phone = try #require(UDID("00008030-001A2B3C4D5E6F70"))
        var table = EndpointTable()

        _ = table.apply(.seen(Seen.usb(udid: phone, kind: .tcp)), at: now)
        _ = table.apply(.seen(Seen.usb(udid: phone)), at: now)
        #expect(table.endpoints.map(\.id) == [nameless])
        _ = table.apply(.seen(Seen.usb("com.example.shop", udid: phone)), at: now)

        #expect(table.endpoints.map(\.id.text) == ["shop-phone-5e6f70"])
    }

    @Test func `an unnamed app on another port or device is kept`() throws {
        let phone = try #require(UDID("00008030-001A2B3C4D5E6F70"))
        let other = try #require(UDID("0123456789abcdef0123456789abcdef01234567"))
        var table = EndpointTable()
        _ = table.apply(.seen(Seen.usb(udid: phone, port: 4_001)), at: now)
        _ = table.apply(.seen(Seen.usb(udid: other)), at: now)

        _ = table.apply(.seen(Seen.usb("com.example.shop", udid: phone)), at: now)

        #expect(table.endpoints.count == 3)
    }

    @Test func `a former ID still refers to its app, and no other server gets it`() throws {
        let phone = try #require(UDID("00008030-001A2B3C4D5E6F70"))
        var table = EndpointTable()
        _ = table.apply(.seen(Seen.usb(udid: phone)), at: now)
        _ = table.apply(.seen(Seen.usb("com.example.shop", udid: phone)), at: now)

        _ = table.apply(.seen(Seen.usb(udid: phone, port: 4_001)), at: now)

        #expect(table[nameless]?.routes.first?.port == 4_000)
        #expect(table.endpoints.map(\.id.text) == ["appreveal-phone-5e6f70-2", "shop-phone-5e6f70"])
    }
}
