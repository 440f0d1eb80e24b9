import FoundationEssentials
import Model
import Testing

@testable import Registry

/// Trust stays with its route, whatever the list shows together.
@Suite struct RouteTrustTests {
    private let now = Date(timeIntervalSince1970: 1_000)
    private let phone = UDID("00008030-001A2B3C4D5E6F70")
    private let otherPhone = UDID("0123456789abcdef0123456789abcdef01234567")

    private func board(_ sightings: Sighting...) -> EndpointTable {
        var board = EndpointTable()
        for sighting in sightings { _ = board.apply(.seen(sighting), at: now) }
        return board
    }

    @Test func `a shared port and a shared name are no evidence`() throws {
        let phone = try #require(phone)
        for cable in [Seen.usb(udid: phone), Seen.usb("com.example.shop", udid: phone)] {
            for sightings in [[Seen.lan(), cable], [cable, Seen.lan()]] {
                var board = EndpointTable()
                for sighting in sightings { _ = board.apply(.seen(sighting), at: now) }

                #expect(board.endpoints.count == 2)
                #expect(Set(board.endpoints.map(\.approval)) == [.approved, .discovered])
            }
        }
    }

    @Test func `the same launch is shown as one endpoint, and only its cable is approved`() throws {
        let phone = try #require(phone)
        let (advert, cable) = (Seen.lan(boot: "b1"), Seen.usb(udid: phone, boot: "b1"))
        for sightings in [[advert, cable], [cable, advert]] {
            var board = EndpointTable()
            for sighting in sightings { _ = board.apply(.seen(sighting), at: now) }

            let endpoint = try #require(board.endpoints.first)
            #expect(board.endpoints.count == 1)
            #expect(endpoint.routes.map(\.route.host?.text) == [nil, "iphone.local"])
            #expect(endpoint.routes.map(\.approval) == [.approved, .discovered])
            // The advert names an app and a host; neither becomes the cabled endpoint's.
            #expect(endpoint.app.isEmpty)
            #expect(endpoint.approvedApp?.isEmpty == true)
            #expect(endpoint.place.host == nil)
            #expect(endpoint.txt.entries.isEmpty)
        }
    }

    @Test func `an unplugged cable leaves an endpoint that waits for it, and the advert by itself`() throws {
        let cable = Seen.usb(udid: try #require(phone), boot: "b1")
        var board = board(Seen.lan(boot: "b1"), cable)
        let id = try #require(board.endpoints.first).id

        _ = board.apply(.lost(cable.id), at: now)

        #expect(board[id]?.state == .offline)
        let advert = try #require(board.endpoints.first { $0.id != id })
        #expect(advert.approval == .discovered && advert.approvedApp == nil)

        _ = board.apply(.seen(cable), at: now)
        #expect(board.endpoints.map(\.id) == [id])
    }

    @Test func `an advert that no longer reports the cable's launch is an endpoint of its own`() throws {
        let phone = try #require(phone)
        var board = board(Seen.usb(udid: phone, boot: "b1"), Seen.lan(boot: "b1"))
        let cabled = try #require(board.endpoints.first).id

        // The app was started again, and the forged advert keeps on repeating the old launch.
        _ = board.apply(.seen(Seen.usb(udid: phone, boot: "b2")), at: now)
        #expect(board.endpoints.count == 2)
        #expect(board[cabled]?.routes.count == 1)

        _ = board.apply(.seen(Seen.lan(boot: "b2")), at: now)
        #expect(board.endpoints.map(\.id) == [cabled])
    }

    @Test func `an address that an owner approved for a cabled endpoint stays with it through launches`() throws {
        let cable = Seen.usb("com.example.shop", udid: try #require(phone), boot: "b1")
        var board = board(cable, Seen.lan(boot: "b1"))
        let endpoint = try #require(board.endpoints.first)
        _ = board.setTrust(.approving(endpoint), of: endpoint.id, at: now)
        #expect(board[endpoint.id]?.routes.map(\.approval) == [.approved, .approved])

        _ = board.apply(.lost(cable.id), at: now)
        _ = board.apply(.seen(Seen.lan(port: 5_000, boot: "b2")), at: now)
        #expect(board[endpoint.id]?.approvedRoutes.map(\.port) == [5_000])

        // A stranger with the same names at another address gets an endpoint of its own.
        _ = board.apply(.seen(Seen.lan(port: 5_000, address: "192.168.1.66", name: "other", boot: "b2")), at: now)
        #expect(board[endpoint.id]?.approvedRoutes.map(\.route.address) == ["192.168.1.20"])

        // Without the approval nothing but the launch kept them together.
        _ = board.setTrust(.none, of: endpoint.id, at: now)
        #expect(board[endpoint.id]?.routes.isEmpty == true)
    }

    @Test func `two phones with the same fixed port are two endpoints, and so is the one on the network`() throws {
        let (one, two) = (try #require(phone), try #require(otherPhone))
        let board = board(Seen.usb(udid: one, boot: "x"), Seen.usb(udid: two, boot: "x"), Seen.lan(boot: "x"))

        #expect(board.endpoints.count == 3)
    }

    @Test func `an advert that claims a phone's UDID does not take its endpoint`() throws {
        let phone = try #require(phone)
        let cable = Seen.usb("com.example.shop", udid: phone)
        var board = board(cable)
        let id = try #require(board.endpoints.first).id
        _ = board.apply(.lost(cable.id), at: now)

        _ = board.apply(.seen(Seen.lan(txt: ["udid=\(phone)", "device=\(phone)"])), at: now)

        #expect(board[id]?.state == .offline)
        #expect(board.endpoints.count == 2)
    }

    @Test func `an advert that changes its app at an approved address is not approved any more`() throws {
        var board = board(Seen.lan("com.example.shop", name: "one"))
        let endpoint = try #require(board.endpoints.first)
        _ = board.setTrust(.approving(endpoint), of: endpoint.id, at: now)

        _ = board.apply(.seen(Seen.lan("com.example.bank", name: "one")), at: now)

        #expect(!board.endpoints.contains { $0.approvedApp?.text == "com.example.bank" })
        #expect(board.endpoints.flatMap(\.approvedRoutes).isEmpty)
    }

    @Test func `a route that another app answered on is changed until the app is seen anew`() throws {
        let cable = Seen.usb("com.example.shop", udid: try #require(phone))
        var board = board(cable)
        let endpoint = try #require(board.endpoints.first)

        _ = board.setMismatch(SanitizedText("com.example.bank"), on: endpoint.routes[0].route, of: endpoint.id)
        #expect(board[endpoint.id]?.approval == .changed)
        #expect(board[endpoint.id]?.approvedRoutes.isEmpty == true)
        _ = board.apply(.seen(cable), at: now)
        #expect(board[endpoint.id]?.approval == .changed)

        _ = board.apply(.lost(cable.id), at: now)
        _ = board.apply(.seen(cable), at: now)
        #expect(board[endpoint.id]?.approval == .approved)
    }

    @Test func `an advert without an address that may be dialled is blocked, with the reason`() throws {
        let advert = Sighting(
            id: Sighting.ID(source: .bonjour, key: "x"),
            kind: .mcp,
            app: SanitizedText("x"),
            appIsBundleID: false,
            name: SanitizedText("x"),
            host: SanitizedText("x.local"),
            routes: [],
            blocked: "8.8.8.8 is not on the network link"
        )
        let endpoint = try #require(board(advert).endpoints.first)

        #expect(endpoint.state == .blocked)
        #expect(endpoint.reason == "8.8.8.8 is not on the network link")
        #expect(endpoint.routes.isEmpty)
    }
}
