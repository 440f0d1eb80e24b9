import FoundationEssentials
import Model
import Testing

@testable import Registry

@Suite struct LimitTests {
    private let now = Date(timeIntervalSince1970: 1_000)
    private let phone = UDID("00008030-001A2B3C4D5E6F70")

    /// Advertisements of many apps, 50 at each address.
    private func flood(_ table: inout EndpointTable, _ count: Int) {
        for number in 1...count {
            let sighting = Seen.network(
                "com.flood.n\(number)",
                host: "h\(number).local",
                port: UInt16(1_024 + number % 60_000),
                address: "10.0.\(number / 50 / 250).\(number / 50 % 250)"
            )
            _ = table.apply(.seen(sighting), at: now.addingTimeInterval(Double(number)))
        }
    }

    @Test func `one machine is limited for any number of announced host names`() {
        var table = EndpointTable()
        for number in 1...200 {
            let flood = Seen.network(
                "com.flood.n\(number)",
                host: "evil\(number).local",
                port: UInt16(1_024 + number),
                address: "192.168.1.66"
            )
            _ = table.apply(.seen(flood), at: now)
        }
        _ = table.apply(.seen(Seen.network()), at: now)

        #expect(table.endpoints.count == EndpointLimits.standard.perAddress + 1)
        #expect(table.refusals.total == 200 - UInt64(EndpointLimits.standard.perAddress))
        #expect(table.endpoints.contains { $0.id.text == "shop-iphone" })
        #expect(table.refusals.count(by: .perAddress) == 200 - EndpointLimits.standard.perAddress)
        #expect(table.refusals.count(by: .total) == 0)

        _ = table.apply(.sourceLost(.bonjour), at: now)
        #expect(table.refusals.isEmpty)
    }

    @Test func `a flood leaves room for USB, configured and approved endpoints`() throws {
        var table = EndpointTable()
        _ = table.apply(.seen(Seen.network()), at: now)
        let approved = try #require(table.endpoints.first)
        _ = table.setTrust(.approving(approved), of: approved.id, at: now)
        _ = table.apply(.lost(Seen.network().id), at: now)

        flood(&table, EndpointLimits.standard.total + 500)
        #expect(table.endpoints.count <= EndpointLimits.standard.total - EndpointLimits.standard.reserve + 1)
        #expect(table[approved.id] != nil)
        #expect(table.refusals.count(by: .total) > 0)

        let cable = Seen.usb(udid: try #require(phone), port: 9_876)
        _ = table.apply(.seen(cable), at: now)
        _ = table.apply(.seen(Seen.config("written")), at: now)
        #expect(table.endpoint(seenAs: cable.id) != nil)
        #expect(table.endpoints.contains { $0.id.text == "written" })
    }

    @Test func `the offline endpoint that is gone longest makes room for a new one`() throws {
        var table = EndpointTable()
        flood(&table, EndpointLimits.standard.total - EndpointLimits.standard.reserve)
        #expect(table.endpoints.count == EndpointLimits.standard.total - EndpointLimits.standard.reserve)
        for number in [9, 7, 8] {
            let gone = Seen.network("com.flood.n\(number)", host: "h\(number).local", address: "10.0.0.0")
            _ = table.apply(.lost(gone.id), at: now)
        }

        let changes = table.apply(.seen(Seen.network(host: "new.local")), at: now.addingTimeInterval(9_999))

        #expect(changes.count == 2)
        #expect(table.endpoints.contains { $0.id.text == "shop-new" })
        #expect(!table.endpoints.contains { $0.id.text == "n7-h7" })
        #expect(table.endpoints.contains { $0.id.text == "n8-h8" })
    }

    /// An app that registered itself with a grant.
    private func registered(_ app: String, by grant: String = "G1") -> Sighting {
        Sighting(
            id: Sighting.ID(source: .registration, key: "\(grant)/mcp/\(app)/phone"),
            kind: .mcp,
            app: SanitizedText(app),
            appIsBundleID: true,
            name: SanitizedText(app),
            host: SanitizedText("phone"),
            routes: [.network(NetworkRoute(address: "10.0.0.2", port: 9_000, registration: app))]
        )
    }

    @Test func `a grant registers 32 different apps, also after a restart and after their removal`() throws {
        var table = EndpointTable()
        for number in 1...32 {
            let app = registered("app\(number)")
            _ = table.apply(.seen(app), at: now)
            _ = table.apply(.lost(app.id), at: now)
        }
        for endpoint in table.endpoints.prefix(16) { _ = try table.removeUnseen(endpoint.id) }
        table = EndpointTable(records: table.records, retired: table.retired)

        _ = table.apply(.seen(registered("app33")), at: now)
        #expect(table.endpoint(seenAs: registered("app33").id) == nil)
        _ = table.apply(.seen(registered("app33", by: "G11")), at: now)
        #expect(table.endpoint(seenAs: registered("app33", by: "G11").id) != nil)
        for number in 1...32 { _ = table.apply(.seen(registered("app\(number)")), at: now) }
        #expect(table.endpoints.count == 33)
    }

    @Test func `the ID of a removed endpoint is assigned only to the same app`() throws {
        var table = EndpointTable()
        _ = table.apply(.seen(Seen.network(host: "mac.local")), at: now)
        let id = try #require(table.endpoints.first).id
        _ = table.apply(.lost(Seen.network(host: "mac.local").id), at: now)
        _ = try table.removeUnseen(id)
        var next = EndpointTable(records: table.records, retired: table.retired)

        // Another bundle ID that would lead to the same endpoint ID.
        _ = next.apply(.seen(Seen.network("org.other.shop", host: "mac.local")), at: now)
        #expect(next.endpoints.map(\.id.text) == ["shop-mac-2"])

        _ = next.apply(.seen(Seen.network(host: "mac.local", port: 5_000)), at: now)
        #expect(next.endpoints.map(\.id.text) == ["shop-mac", "shop-mac-2"])
        #expect(next[id]?.app.text == "com.example.shop")
    }
}
