import FoundationEssentials
import Model
import Testing

@testable import Registry

@Suite struct EndpointTableTests {
    private let now = Date(timeIntervalSince1970: 1_000)
    private let phone = UDID("00008030-001A2B3C4D5E6F70")
    private let otherPhone = UDID("0123456789abcdef0123456789abcdef01234567")

    private func board(_ sightings: Sighting...) -> EndpointTable {
        var board = EndpointTable()
        for sighting in sightings { _ = board.apply(.seen(sighting), at: now) }
        return board
    }

    @Test func `an app seen on two interfaces and two protocols is one endpoint with all routes`() {
        let board = board(
            Seen.lan(),
            Seen.lan(interface: "wlan0", address: "192.168.2.20"),
            Seen.lan(address: "2001:db8::20")
        )

        #expect(board.endpoints.map(\.id.text) == ["shop-iphone"])
        #expect(board.endpoints.first?.routes.count == 3)
    }

    @Test func `an app whose first known address may not be dialled is one endpoint with all routes`() {
        let board = board(
            Seen.lan(blocked: "192.168.1.20 is on no link of this machine"),
            Seen.lan(interface: "wlan0", address: "192.168.2.20"),
            Seen.lan()
        )

        #expect(board.endpoints.map(\.id.text) == ["shop-iphone"])
        #expect(board.endpoints.first?.routes.count == 2)
    }

    @Test func `a TXT record is the one that is announced now, cut or whole or empty`() {
        let long = (0..<40).map { "k\($0)=\($0)" }
        var board = board(Seen.lan(txt: long))
        #expect(board.endpoints.first?.txtIsTruncated == true)

        _ = board.apply(.seen(Seen.lan(txt: ["a=1"])), at: now)
        #expect(board.endpoints.first?.txt["a"] == "1")
        #expect(board.endpoints.first?.txtIsTruncated == nil)

        _ = board.apply(.seen(Seen.lan()), at: now)
        #expect(board.endpoints.first?.txt.entries.isEmpty == true)
    }

    @Test func `twins that only share a name are two endpoints`() {
        let board = board(Seen.lan(host: "iphone.local"), Seen.lan(host: "ipad.local", address: "192.168.1.21"))

        #expect(board.endpoints.map(\.id.text) == ["shop-ipad", "shop-iphone"])
    }

    @Test func `two servers of one app on one host are two endpoints`() {
        let board = board(Seen.lan(port: 4_000), Seen.lan(port: 4_001, name: "AppReveal-com.example.shop (2)"))

        #expect(board.endpoints.map(\.id.text) == ["shop-iphone", "shop-iphone-2"])
    }

    @Test func `an app that comes back on another port keeps its id`() {
        var board = board(Seen.lan(port: 4_000))
        _ = board.apply(.lost(Seen.lan().id), at: now)
        #expect(board.endpoints.first?.state == .offline)

        let outcomes = board.apply(.seen(Seen.lan(port: 5_555)), at: now)

        #expect(board.endpoints.map(\.id.text) == ["shop-iphone"])
        #expect(board.endpoints.first?.routes.map(\.port) == [5_555])
        #expect(outcomes.count == 1)
    }

    @Test func `an app that moves without saying goodbye keeps its id`() {
        var board = board(Seen.lan(port: 4_000))

        let outcomes = board.apply(.seen(Seen.lan(port: 5_555)), at: now)

        #expect(outcomes == board.endpoints.map(EndpointTable.Outcome.changed))
        #expect(board.endpoints.first?.routes.map(\.port) == [5_555])
    }

    @Test func `an app that moves is one endpoint while only one protocol has told so`() {
        var board = board(Seen.lan(), Seen.lan(interface: "wlan0"), Seen.lan(address: "2001:db8::20"))

        let first = board.apply(.seen(Seen.lan(port: 5_555, address: "2001:db8::20")), at: now)
        #expect(first == board.endpoints.map(EndpointTable.Outcome.changed))
        #expect(board.endpoints.map(\.id.text) == ["shop-iphone"])
        #expect(Set(board.endpoints.first?.routes.map(\.port) ?? []) == [4_000, 5_555])

        for interface in ["eth0", "wlan0"] {
            _ = board.apply(.seen(Seen.lan(port: 5_555, interface: interface)), at: now)
        }
        #expect(board.endpoints.map(\.id.text) == ["shop-iphone"])
        #expect(board.endpoints.first?.routes.map(\.port) == [5_555, 5_555, 5_555])
    }

    @Test func `of twins the one that moves keeps its id, and the other its own`() {
        let second = "AppReveal-com.example.shop (2)"
        var board = board(
            Seen.lan(),
            Seen.lan(address: "2001:db8::20"),
            Seen.lan(port: 4_001, name: second),
            Seen.lan(port: 4_001, address: "2001:db8::20", name: second)
        )

        for address in ["192.168.1.20", "2001:db8::20"] {
            _ = board.apply(.seen(Seen.lan(port: 5_555, address: address, name: second)), at: now)
        }

        #expect(board.endpoints.map(\.id.text) == ["shop-iphone", "shop-iphone-2"])
        #expect(board.endpoints.map { Set($0.routes.map(\.port)) } == [[4_000], [5_555]])
    }

    @Test func `a host that the network renames keeps its endpoints' ids`() {
        var board = board(Seen.lan(host: "mac.local"))
        _ = board.apply(.lost(Seen.lan(host: "mac.local").id), at: now)

        _ = board.apply(.seen(Seen.lan(host: "mac-2.local")), at: now)

        #expect(board.endpoints.map(\.id.text) == ["shop-mac"])
    }

    @Test func `after a restart each of two alike hosts gets its own id back in any order`() {
        let first = Seen.lan(host: "mac.local")
        let second = Seen.lan(host: "mac-2.local", address: "192.168.1.21")
        let before = board(first, second)
        let ids = before.endpoints.map { ($0.place.host, $0.id) }

        var after = EndpointTable(records: before.records)
        _ = after.apply(.seen(second), at: now)
        _ = after.apply(.seen(first), at: now)

        #expect(after.endpoints.map(\.place.host) == ids.map(\.0))
        #expect(after.endpoints.map(\.id) == ids.map(\.1))
    }

    @Test func `an endpoint of an earlier run is listed offline until it is seen`() throws {
        var board = EndpointTable(records: board(Seen.lan()).records)
        let restored = try #require(board.endpoints.first)
        #expect(restored.state == .offline)
        #expect(restored.routes.isEmpty)

        _ = board.apply(.seen(Seen.lan(port: 7_000)), at: now)

        #expect(board.endpoints.map(\.id) == [restored.id])
        #expect(board.endpoints.first?.state == .online)
    }

    @Test func `losing one of several sightings is no loss`() {
        var board = board(Seen.lan(), Seen.lan(interface: "wlan0", address: "192.168.2.20"))

        _ = board.apply(.lost(Seen.lan().id), at: now)

        #expect(board.endpoints.first?.state == .online)
        #expect(board.endpoints.first?.routes.count == 1)
    }

    @Test func `seeing the same thing twice is no change`() {
        var board = board(Seen.lan())

        #expect(board.apply(.seen(Seen.lan()), at: now.addingTimeInterval(5)).isEmpty)
        #expect(board.endpoints.first?.lastSeen == now.addingTimeInterval(5))
    }

    @Test func `a source that dies makes its endpoints suspect and one that returns settles them`() {
        var board = board(Seen.lan(), Seen.lan("com.example.mail"))

        _ = board.apply(.sourceLost(.bonjour), at: now)
        #expect(board.endpoints.map(\.state) == [.suspect, .suspect])
        _ = board.apply(.seen(Seen.lan()), at: now)
        _ = board.apply(.sourceReconciled(.bonjour), at: now)

        #expect(board[EndpointID("shop-iphone") ?? Self.nowhere]?.state == .online)
        #expect(board[EndpointID("mail-iphone") ?? Self.nowhere]?.state == .offline)
    }

    @Test func `the loss of one source does not touch what another sees`() throws {
        var board = board(Seen.lan(), Seen.usb(udid: try #require(phone)))

        _ = board.apply(.sourceLost(.bonjour), at: now)

        #expect(board.endpoints.map(\.state) == [.online, .suspect])
    }

    @Test func `one failed probe is suspect, three are offline, one success is online`() throws {
        var board = board(Seen.lan())
        let id = try #require(board.endpoints.first?.id)
        let dead = DialError(.unreachable, "no way to 192.168.1.20")

        _ = board.report(dead, of: id, at: now)
        #expect(board[id]?.state == .suspect)
        #expect(board[id]?.reason == dead.description)
        _ = board.report(dead, of: id, at: now)
        _ = board.report(dead, of: id, at: now)
        #expect(board[id]?.state == .offline)
        _ = board.report(nil, of: id, at: now)
        #expect(board[id]?.state == .online)
        #expect(board[id]?.reason == nil)
    }

    @Test func `an advert repeated by a cache does not revive what the probes found dead`() throws {
        var board = board(Seen.lan())
        let id = try #require(board.endpoints.first?.id)
        for _ in 1...3 { _ = board.report(DialError(.refused, "refused"), of: id, at: now) }

        _ = board.apply(.seen(Seen.lan()), at: now)

        #expect(board[id]?.state == .offline)
    }

    @Test func `plugging in and writing down approve, advertising does not`() throws {
        let board = board(
            Seen.lan("com.example.a"),
            Seen.usb("com.example.b", udid: try #require(phone), port: 9_876),
            Seen.config("c")
        )

        #expect(board.endpoints.map(\.approval) == [.discovered, .approved, .approved])
    }

    @Test func `an approval is for an address, and an app that takes the name at another one is changed`() throws {
        var board = board(Seen.lan())
        let endpoint = try #require(board.endpoints.first)
        let trust = EndpointTrust.approving(endpoint)

        #expect(board.setTrust(trust, of: endpoint.id, at: now).count == 1)
        #expect(board.setTrust(trust, of: endpoint.id, at: now).isEmpty, "the same again is no change")
        #expect(board[endpoint.id]?.approval == .approved)

        _ = board.apply(.lost(Seen.lan().id), at: now)
        #expect(board[endpoint.id]?.approval == .approved)
        _ = board.apply(.seen(Seen.lan(host: "iphone-2.local", address: "192.168.1.66")), at: now)
        #expect(board.endpoints.map(\.approval) == [.changed])

        let next = EndpointTable(records: board.records, trusts: [endpoint.id: trust])
        #expect(next.endpoints.map(\.approval) == [.approved], "it is offline now, and the approval stands")
        #expect(board.setTrust(.none, of: endpoint.id, at: now).count == 1)
        #expect(board.endpoints.map(\.approval) == [.discovered])
    }

    @Test func `the approval of an offline endpoint can be revoked`() throws {
        var board = board(Seen.lan())
        let endpoint = try #require(board.endpoints.first)
        _ = board.setTrust(.approving(endpoint), of: endpoint.id, at: now)
        _ = board.apply(.lost(Seen.lan().id), at: now)

        #expect(board.setTrust(.none, of: endpoint.id, at: now).count == 1)

        #expect(board.endpoints.map(\.approval) == [.discovered])
    }

    @Test func `only what is gone can be forgotten`() throws {
        var board = board(Seen.lan())
        let id = try #require(board.endpoints.first?.id)
        #expect(throws: RegistryError.stillSeen(id)) { try board.forget(id) }

        _ = board.apply(.lost(Seen.lan().id), at: now)
        _ = try board.forget(id)

        #expect(board.endpoints.isEmpty)
        #expect(throws: RegistryError.noSuchEndpoint(id.text)) { try board.forget(id) }
    }

    private static let nowhere = EndpointID(app: SanitizedText("nowhere"), place: "")

    @Test func `what a person wrote down is never seen until a probe reaches it`() throws {
        var board = board(Seen.config("simulator"))
        let id = try #require(board.endpoints.first?.id)
        #expect(board[id]?.lastSeen == nil)

        _ = board.report(nil, of: id, at: now)
        #expect(board[id]?.lastSeen == now)

        var next = EndpointTable(records: board.records)
        _ = next.apply(.seen(Seen.config("simulator")), at: now.addingTimeInterval(60))
        #expect(next[id]?.lastSeen == now)
    }

    @Test func `two configured endpoints of one app are listed under the names they were given`() {
        let board = board(
            Seen.config("staging", app: "com.example.shop"),
            Seen.config("production", app: "com.example.shop")
        )

        #expect(board.endpoints.map(\.id.text) == ["production", "staging"])
        #expect(board.endpoints.map(\.name.text) == ["production", "staging"])
    }
}
