import FoundationEssentials
import Model
import Samples
import Testing

@testable import Registry

@Suite struct EndpointTableTests {
    private let phone = UDID.sample

    @Test func `an app on two interfaces and two IP versions is one endpoint with all routes`() {
        let table = EndpointTable(
            Seen.network(),
            Seen.network(interface: "wlan0", address: "192.168.2.20"),
            Seen.network(address: "2001:db8::20")
        )

        #expect(table.endpoints.map(\.id.text) == ["shop-iphone"])
        #expect(table.endpoints.first?.routes.count == 3)
    }

    @Test func `an app with a blocked first address is one endpoint with all routes`() {
        let table = EndpointTable(
            Seen.network(blocked: "192.168.1.20 is on no link of this machine"),
            Seen.network(interface: "wlan0", address: "192.168.2.20"),
            Seen.network()
        )

        #expect(table.endpoints.map(\.id.text) == ["shop-iphone"])
        #expect(table.endpoints.first?.routes.count == 2)
    }

    @Test func `the TXT record is the current one, truncated or complete or empty`() {
        let long = (0..<40).map { "k\($0)=\($0)" }
        var table = EndpointTable(Seen.network(txt: long))
        #expect(table.endpoints.first?.txtTruncated == true)

        table.see(Seen.network(txt: ["a=1"]))
        #expect(table.endpoints.first?.txt["a"] == "1")
        #expect(table.endpoints.first?.txtTruncated == nil)

        table.see(Seen.network())
        #expect(table.endpoints.first?.txt.entries.isEmpty == true)
    }

    @Test func `two machines with the same app name are two endpoints`() {
        let table = EndpointTable(
            Seen.network(machine: "iphone.local"),
            Seen.network(machine: "ipad.local", address: "192.168.1.21")
        )

        #expect(table.endpoints.map(\.id.text) == ["shop-ipad", "shop-iphone"])
    }

    @Test func `two servers of one app on one machine are two endpoints`() {
        let table = EndpointTable(
            Seen.network(port: 4_000),
            Seen.network(port: 4_001, name: "AppReveal-com.example.shop (2)")
        )

        #expect(table.endpoints.map(\.id.text) == ["shop-iphone", "shop-iphone-2"])
    }

    @Test func `an app that returns on another port keeps its ID`() {
        var table = EndpointTable(Seen.network(port: 4_000))
        table.lose(Seen.network().id)
        #expect(table.endpoints.first?.state == .offline)

        let changes = table.see(Seen.network(port: 5_555))

        #expect(table.endpoints.map(\.id.text) == ["shop-iphone"])
        #expect(table.endpoints.first?.routes.map(\.port) == [5_555])
        #expect(changes.count == 1)
    }

    @Test func `an app that moves without a goodbye keeps its ID`() {
        var table = EndpointTable(Seen.network(port: 4_000))

        let changes = table.see(Seen.network(port: 5_555))

        #expect(changes == table.endpoints.map(EndpointTable.Change.changed))
        #expect(table.endpoints.first?.routes.map(\.port) == [5_555])
    }

    @Test func `an app that moves stays one endpoint while only one IP version has reported it`() {
        var table = EndpointTable(
            Seen.network(),
            Seen.network(interface: "wlan0"),
            Seen.network(address: "2001:db8::20")
        )

        let first = table.see(Seen.network(port: 5_555, address: "2001:db8::20"))
        #expect(first == table.endpoints.map(EndpointTable.Change.changed))
        #expect(table.endpoints.map(\.id.text) == ["shop-iphone"])
        #expect(Set(table.endpoints.first?.routes.map(\.port) ?? []) == [4_000, 5_555])

        for interface in ["eth0", "wlan0"] {
            table.see(Seen.network(port: 5_555, interface: interface))
        }
        #expect(table.endpoints.map(\.id.text) == ["shop-iphone"])
        #expect(table.endpoints.first?.routes.map(\.port) == [5_555, 5_555, 5_555])
    }

    @Test func `if one of two equal apps moves, both keep their IDs`() {
        let second = "AppReveal-com.example.shop (2)"
        var table = EndpointTable(
            Seen.network(),
            Seen.network(address: "2001:db8::20"),
            Seen.network(port: 4_001, name: second),
            Seen.network(port: 4_001, address: "2001:db8::20", name: second)
        )

        for address in ["192.168.1.20", "2001:db8::20"] {
            table.see(Seen.network(port: 5_555, address: address, name: second))
        }

        #expect(table.endpoints.map(\.id.text) == ["shop-iphone", "shop-iphone-2"])
        #expect(table.endpoints.map { Set($0.routes.map(\.port)) } == [[4_000], [5_555]])
    }

    @Test func `a machine that is renamed by the network keeps its endpoints' IDs`() {
        var table = EndpointTable(Seen.network(machine: "mac.local"))
        table.lose(Seen.network(machine: "mac.local").id)

        table.see(Seen.network(machine: "mac-2.local"))

        #expect(table.endpoints.map(\.id.text) == ["shop-mac"])
    }

    @Test func `after a restart two similar machines get their own IDs back in any order`() {
        let first = Seen.network(machine: "mac.local")
        let second = Seen.network(machine: "mac-2.local", address: "192.168.1.21")
        let before = EndpointTable(first, second)
        let ids = before.endpoints.map { ($0.location.machine, $0.id) }

        var after = EndpointTable(records: before.records)
        after.see(second, first)

        #expect(after.endpoints.map(\.location.machine) == ids.map(\.0))
        #expect(after.endpoints.map(\.id) == ids.map(\.1))
    }

    @Test func `an endpoint of an earlier run is listed offline until it is seen`() throws {
        var table = EndpointTable(records: EndpointTable(Seen.network()).records)
        let restored = try #require(table.endpoints.first)
        #expect(restored.state == .offline)
        #expect(restored.routes.isEmpty)

        table.see(Seen.network(port: 7_000))

        #expect(table.endpoints.map(\.id) == [restored.id])
        #expect(table.endpoints.first?.state == .online)
    }

    @Test func `losing one of several sightings keeps the endpoint online`() {
        var table = EndpointTable(Seen.network(), Seen.network(interface: "wlan0", address: "192.168.2.20"))

        table.lose(Seen.network().id)

        #expect(table.endpoints.first?.state == .online)
        #expect(table.endpoints.first?.routes.count == 1)
    }

    @Test func `a repeated sighting is not a change`() {
        var table = EndpointTable(Seen.network())

        #expect(table.apply(.seen(Seen.network()), at: now.addingTimeInterval(5)).isEmpty)
        #expect(table.endpoints.first?.lastSeenAt == now.addingTimeInterval(5))
    }

    @Test func `a lost source makes its endpoints suspect, and its reconciliation resolves them`() {
        var table = EndpointTable(Seen.network(), Seen.network("com.example.mail"))

        _ = table.apply(.sourceLost(.bonjour), at: now)
        #expect(table.endpoints.map(\.state) == [.suspect, .suspect])
        table.see(Seen.network())
        _ = table.apply(.sourceReconciled(.bonjour), at: now)

        #expect(table["shop-iphone"]?.state == .online)
        #expect(table["mail-iphone"]?.state == .offline)
    }

    @Test func `the loss of one source does not affect sightings of another`() throws {
        var table = EndpointTable(Seen.network(), Seen.usb(udid: phone))

        _ = table.apply(.sourceLost(.bonjour), at: now)

        #expect(table.endpoints.map(\.state) == [.online, .suspect])
    }

    @Test func `one failed probe makes an endpoint suspect, three make it offline, one success makes it online`() throws
    {
        var table = EndpointTable(Seen.network())
        let id = try #require(table.endpoints.first?.id)
        let dead = DialError(.unreachable, "no way to 192.168.1.20")

        _ = table.report(dead, of: id, at: now)
        #expect(table[id]?.state == .suspect)
        #expect(table[id]?.reason == dead.description)
        _ = table.report(dead, of: id, at: now)
        _ = table.report(dead, of: id, at: now)
        #expect(table[id]?.state == .offline)
        _ = table.report(nil, of: id, at: now)
        #expect(table[id]?.state == .online)
        #expect(table[id]?.reason == nil)
    }

    @Test func `an advertisement repeated by a cache does not revive an endpoint that probes found offline`() throws {
        var table = EndpointTable(Seen.network())
        let id = try #require(table.endpoints.first?.id)
        for _ in 1...3 { _ = table.report(DialError(.refused, "refused"), of: id, at: now) }

        table.see(Seen.network())

        #expect(table[id]?.state == .offline)
    }

    @Test func `USB and configured endpoints are approved implicitly, advertised ones are not`() throws {
        let table = EndpointTable(
            Seen.network("com.example.a"),
            Seen.usb("com.example.b", udid: phone, port: 9_876),
            Seen.config("c")
        )

        #expect(table.endpoints.map(\.approval) == [.pending, .approved, .approved])
    }

    @Test func `an approval applies to an address, and an app with the same name at another address is changed`() throws
    {
        var table = EndpointTable(Seen.network())
        let endpoint = try #require(table.endpoints.first)
        let trust = EndpointTrust.approving(endpoint)

        #expect(table.setTrust(trust, of: endpoint.id, at: now).count == 1)
        #expect(table.setTrust(trust, of: endpoint.id, at: now).isEmpty, "the same again is no change")
        #expect(table[endpoint.id]?.approval == .approved)

        table.lose(Seen.network().id)
        #expect(table[endpoint.id]?.approval == .approved)
        table.see(Seen.network(address: "192.168.1.66"))
        #expect(table.endpoints.map(\.approval) == [.changed])

        let next = EndpointTable(records: table.records, trusts: [endpoint.id: trust])
        #expect(next.endpoints.map(\.approval) == [.approved], "it is offline now, and the approval stands")
        #expect(table.setTrust(.none, of: endpoint.id, at: now).count == 1)
        #expect(table.endpoints.map(\.approval) == [.pending])
    }

    @Test func `the approval of an offline endpoint can be revoked`() throws {
        var table = EndpointTable(Seen.network())
        let endpoint = try #require(table.endpoints.first)
        _ = table.setTrust(.approving(endpoint), of: endpoint.id, at: now)
        table.lose(Seen.network().id)

        #expect(table.setTrust(.none, of: endpoint.id, at: now).count == 1)

        #expect(table.endpoints.map(\.approval) == [.pending])
    }

    @Test func `only an offline endpoint can be removed`() throws {
        var table = EndpointTable(Seen.network())
        let id = try #require(table.endpoints.first?.id)
        #expect(throws: RegistryError.stillPresent(id)) { try table.removeUnseen(id) }

        table.lose(Seen.network().id)
        _ = try table.removeUnseen(id)

        #expect(table.endpoints.isEmpty)
        #expect(throws: RegistryError.noSuchEndpoint(id.text)) { try table.removeUnseen(id) }
    }

    @Test func `a configured endpoint has no last-seen time until a probe reaches it`() throws {
        var table = EndpointTable(Seen.config("simulator"))
        let id = try #require(table.endpoints.first?.id)
        #expect(table[id]?.lastSeenAt == nil)
        #expect(table[id]?.state == .suspect && table[id]?.reason == "not tried yet")

        _ = table.report(nil, of: id, at: now)
        #expect(table[id]?.lastSeenAt == now)
        #expect(table[id]?.state == .online && table[id]?.reason == nil)

        var next = EndpointTable(records: table.records)
        _ = next.apply(.seen(Seen.config("simulator")), at: now.addingTimeInterval(60))
        #expect(next[id]?.lastSeenAt == now)
    }

    @Test func `two configured endpoints of one app are listed under their configured names`() {
        let table = EndpointTable(
            Seen.config("staging", app: "com.example.shop"),
            Seen.config("production", app: "com.example.shop")
        )

        #expect(table.endpoints.map(\.id.text) == ["production", "staging"])
        #expect(table.endpoints.map(\.name.text) == ["production", "staging"])
    }
}
