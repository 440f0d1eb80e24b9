import FoundationEssentials
import Model
import Samples
import Testing

@testable import Registry

/// Relaunches on another port that are seen before the end of the last launch.
@Suite struct RelaunchTests {
    private let phone = UDID.sample
    private static let refused = DialError(.refused, "nothing listens there")

    private static let first = Seen.network(port: 4_000)
    private static let second = Seen.network(port: 4_001, name: "AppReveal-com.example.shop (2)")

    @Test func `a relaunch of an app whose port refused a connection keeps its ID`() throws {
        var table = EndpointTable(Self.first)
        let id = try #require(table.endpoints.first?.id)
        _ = table.report(Self.refused, of: id, at: now)
        table.see(Self.second)

        #expect(table.endpoints.map(\.id) == [id])
        #expect(table.endpoints.first?.routes.map(\.port) == [4_001])
    }

    @Test func `a relaunch that was listed as a second app joins the older ID when the old port refuses`() throws {
        var table = EndpointTable(Self.first, Self.second)
        let ids = table.endpoints.map(\.id)
        #expect(ids.count == 2 && table.older(than: ids[1]) == ids[0])

        let changes = table.report(Self.refused, of: ids[0], at: now)

        #expect(table.endpoints.map(\.id) == [ids[0]])
        #expect(table.endpoints.first?.routes.map(\.port) == [4_001])
        #expect(table.endpoints.first?.state == .online)
        #expect(table[ids[1]]?.id == ids[0], "the newer ID leads to the same app")
        #expect(changes.contains { $0.kind == .removed && $0.endpoint.id == ids[1] })
    }

    @Test func `two apps that both run keep their IDs when one of them quits`() throws {
        var table = EndpointTable(Self.first, Self.second)
        let ids = table.endpoints.map(\.id)
        _ = table.report(nil, of: ids[0], at: now)

        _ = table.report(Self.refused, of: ids[0], at: now)

        #expect(table.endpoints.map(\.id) == ids)
        #expect(table.older(than: ids[1]) == nil)
    }

    @Test func `an advertisement that ends soon after a similar one appeared was that app's last launch`() throws {
        var table = EndpointTable(Self.first, Self.second)
        let ids = table.endpoints.map(\.id)
        _ = table.apply(.lost(Self.first.id), at: now.addingTimeInterval(60))

        #expect(table.endpoints.map(\.id) == [ids[0]])
    }

    @Test func `an advertisement that ends later was another app`() throws {
        var table = EndpointTable(Self.first, Self.second)
        let ids = table.endpoints.map(\.id)
        _ = table.apply(.lost(Self.first.id), at: now.addingTimeInterval(600))

        #expect(table.endpoints.map(\.id) == ids)
    }

    @Test func `a server that answers again describes its endpoint again`() throws {
        var table = EndpointTable(Self.first)
        let id = try #require(table.endpoints.first?.id)
        _ = table.report(Self.refused, of: id, at: now)
        table.see(Self.second, Seen.network(port: 4_000, txt: ["again=1"]))

        #expect(table.endpoints.first?.routes.map(\.port).sorted() == [4_000, 4_001])
    }

    @Test func `an app on another port of a phone keeps its ID if its last port was lost before`() throws {
        let udid = phone
        var table = EndpointTable(Seen.usb("com.example.shop", udid: udid, port: 9_876))
        let id = table.endpoints.map(\.id)
        table.lose(Seen.usb(udid: udid, port: 9_876).id)
        table.see(Seen.usb("com.example.shop", udid: udid, port: 8_765))
        #expect(table.endpoints.map(\.id) == id)
    }

    @Test func `an app that was seen on two ports of a phone joins when the older port is lost`() throws {
        let udid = phone
        var table = EndpointTable(
            Seen.usb("com.example.shop", udid: udid, port: 9_876),
            Seen.usb("com.example.shop", udid: udid, port: 8_765)
        )
        let ids = table.endpoints.map(\.id)
        #expect(ids.count == 2)
        table.lose(Seen.usb(udid: udid, port: 9_876).id)

        #expect(table.endpoints.map(\.id) == [ids[0]])
        #expect(table.endpoints.first?.routes.map(\.port) == [8_765])
    }
}

/// Servers on the abstract sockets of Android phones.
@Suite struct AbstractSocketTests {
    private static let udid = UDID(androidSerial: "R58M12ABCDE") ?? .sample

    private func pages(_ app: String, _ socket: String) throws -> Sighting {
        let name = try #require(AbstractSocketName(socket))
        return Sighting(
            id: Sighting.ID(source: .usbmuxd, key: "\(Self.udid)/devtools/\(app)/"),
            kind: .web,
            app: SanitizedText(app),
            appIsBundleID: true,
            name: SanitizedText(app),
            device: Self.udid,
            routes: [.usb(USBRoute(udid: Self.udid, socket: .abstract(name)))]
        )
    }

    @Test func `the pages of two apps are two endpoints, and keep their IDs over a relaunch`() throws {
        var table = EndpointTable()
        _ = table.apply(.seen(try pages("com.example.shop", "webview_devtools_remote_1")), at: now)
        _ = table.apply(.seen(try pages("com.example.bank", "webview_devtools_remote_2")), at: now)
        let ids = table.endpoints.map(\.id.text).sorted()
        #expect(ids == ["web-bank-phone-2abcde", "web-shop-phone-2abcde"])

        _ = table.apply(.seen(try pages("com.example.shop", "webview_devtools_remote_3")), at: now)

        #expect(table.endpoints.map(\.id.text).sorted() == ids)
        let shop = table.endpoints.first { $0.app.text == "com.example.shop" }
        #expect(shop?.routes.map(\.description).joined().contains("webview_devtools_remote_3") == true)
        #expect(shop?.state == .online && shop?.routes.count == 1)
    }
}
