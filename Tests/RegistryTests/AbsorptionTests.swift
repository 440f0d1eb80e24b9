import FoundationEssentials
import Model
import Testing

@testable import Registry

/// An app that says its name late, or not at every launch.
@Suite struct AbsorptionTests {
    private let now = Date(timeIntervalSince1970: 1_000)
    private let nameless = EndpointID(app: SanitizedText("appreveal"), place: "phone-5e6f70")

    @Test func `an app that says its name late is one endpoint, and its first id still means it`() throws {
        let phone = try #require(UDID("00008030-001A2B3C4D5E6F70"))
        var board = EndpointTable()
        _ = board.apply(.seen(Seen.usb(udid: phone)), at: now)
        #expect(board.endpoints.map(\.id) == [nameless])

        let outcomes = board.apply(.seen(Seen.usb("com.example.shop", udid: phone)), at: now)

        #expect(board.endpoints.map(\.id.text) == ["shop-phone-5e6f70"])
        #expect(outcomes.count == 2)
        #expect(board[nameless]?.id.text == "shop-phone-5e6f70")
        #expect(EndpointTable(records: board.records)[nameless]?.id.text == "shop-phone-5e6f70")
    }

    @Test func `a relaunch that begins nameless ends as the endpoint that was known`() throws {
        let phone = try #require(UDID("00008030-001A2B3C4D5E6F70"))
        var board = EndpointTable()
        let app = Seen.usb("com.example.shop", udid: phone)
        for sighting in [app, Seen.usb(udid: phone), app] {
            _ = board.apply(.seen(sighting), at: now)
            if sighting != app { #expect(board.endpoints.count == 2) }
            _ = board.apply(.lost(sighting.id), at: now)
        }

        _ = board.apply(.seen(app), at: now)

        #expect(board.endpoints.map(\.id.text) == ["shop-phone-5e6f70"])
        #expect(board.endpoints.first?.state == .online)
    }

    @Test func `a port that turns out to be a debug server leaves no ghost`() throws {
        let phone = try #require(UDID("00008030-001A2B3C4D5E6F70"))
        var board = EndpointTable()

        _ = board.apply(.seen(Seen.usb(udid: phone, kind: .tcp)), at: now)
        _ = board.apply(.seen(Seen.usb(udid: phone)), at: now)
        #expect(board.endpoints.map(\.id) == [nameless])
        _ = board.apply(.seen(Seen.usb("com.example.shop", udid: phone)), at: now)

        #expect(board.endpoints.map(\.id.text) == ["shop-phone-5e6f70"])
    }

    @Test func `a nameless app on another port or another phone is left alone`() throws {
        let phone = try #require(UDID("00008030-001A2B3C4D5E6F70"))
        let other = try #require(UDID("0123456789abcdef0123456789abcdef01234567"))
        var board = EndpointTable()
        _ = board.apply(.seen(Seen.usb(udid: phone, port: 4_001)), at: now)
        _ = board.apply(.seen(Seen.usb(udid: other)), at: now)

        _ = board.apply(.seen(Seen.usb("com.example.shop", udid: phone)), at: now)

        #expect(board.endpoints.count == 3)
    }

    @Test func `a former id goes on meaning its app, and no other server gets it`() throws {
        let phone = try #require(UDID("00008030-001A2B3C4D5E6F70"))
        var board = EndpointTable()
        _ = board.apply(.seen(Seen.usb(udid: phone)), at: now)
        _ = board.apply(.seen(Seen.usb("com.example.shop", udid: phone)), at: now)

        _ = board.apply(.seen(Seen.usb(udid: phone, port: 4_001)), at: now)

        #expect(board[nameless]?.routes.first?.port == 4_000)
        #expect(board.endpoints.map(\.id.text) == ["appreveal-phone-5e6f70-2", "shop-phone-5e6f70"])
    }
}
