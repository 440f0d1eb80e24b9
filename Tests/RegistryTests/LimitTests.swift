import FoundationEssentials
import Model
import Samples
import Testing

@testable import Registry

@Suite struct LimitTests {
    private let phone = UDID.sample

    /// Advertisements of many apps, 50 at each address.
    private func flood(_ table: inout EndpointTable, _ count: Int) {
        for number in 1...count {
            let sighting = Seen.network(
                "com.flood.n\(number)",
                machine: "h\(number).local",
                port: UInt16(1_024 + number % 60_000),
                address: "10.0.\(number / 50 / 250).\(number / 50 % 250)"
            )
            _ = table.apply(.seen(sighting), at: now.addingTimeInterval(Double(number)))
        }
    }

    @Test func `one machine is limited for any number of announced names`() {
        var table = EndpointTable()
        for number in 1...200 {
            let flood = Seen.network(
                "com.flood.n\(number)",
                machine: "evil\(number).local",
                port: UInt16(1_024 + number),
                address: "192.168.1.66"
            )
            table.see(flood)
        }
        table.see(Seen.network())

        #expect(table.endpoints.count == EndpointLimits.standard.perAddress + 1)
        #expect(table.refusals.total == 200 - UInt64(EndpointLimits.standard.perAddress))
        #expect(table.endpoints.contains { $0.id.text == "shop-iphone" })
        #expect(table.refusals.count(by: .perAddress) == 200 - EndpointLimits.standard.perAddress)
        #expect(table.refusals.count(by: .total) == 0)

        _ = table.apply(.sourceLost(.bonjour), at: now)
        #expect(table.refusals.isEmpty)
    }

    /// Adverts of many apps that all claim the address of another machine.
    private func claims(_ numbers: ClosedRange<Int>, on machine: String? = nil, into table: inout EndpointTable) {
        for number in numbers {
            let claim = Seen.network(
                "com.flood.n\(number)",
                machine: machine ?? "evil\(number).local",
                port: UInt16(1_024 + number)
            )
            _ = table.apply(.seen(claim), at: now.addingTimeInterval(Double(number)))
        }
    }

    @Test(arguments: [nil, "evil.local", "iphone.local"])
    func `200 adverts that claim the address of a phone hide neither its apps nor its next app`(machine: String?) throws
    {
        var table = EndpointTable()
        let apps = ["com.example.shop", "com.example.bank"].map { Seen.network($0, port: 900) }
        table.see(apps[0])
        claims(1...200, on: machine, into: &table)
        _ = table.apply(.seen(apps[1]), at: now.addingTimeInterval(300))

        for app in apps { #expect(table.endpoint(seenAs: app.id)?.state == .online) }
        #expect(table.endpoints.count == EndpointLimits.standard.perAddress)
        #expect(table.refusals.count(by: .perAddress) == 202 - EndpointLimits.standard.perAddress)
        #expect(table.refusals.examples(3).count == 3)
        #expect(table.refusals.examples(1).first?.hasPrefix("\"com.flood.n") == true)
    }

    @Test func `an approved app and its relaunch keep their place at a crowded address`() throws {
        var table = EndpointTable(Seen.network())
        let id = try #require(table.endpoints.first).id
        _ = table.setTrust(.approving(try #require(table[id])), of: id, at: now)
        table.lose(Seen.network().id)
        claims(1...300, into: &table)
        #expect(table.endpoints.count == EndpointLimits.standard.perAddress + 1)

        _ = table.apply(.seen(Seen.network(port: 4_500)), at: now.addingTimeInterval(400))
        #expect(table[id]?.state == .online && table[id]?.approval == .approved)
    }

    @Test func `an advert that made room is listed again when another one has gone`() throws {
        var table = EndpointTable()
        let count = EndpointLimits.standard.perAddress
        claims(1...(count + 1), into: &table)
        let hidden = try #require(
            (1...count).first { number in table.endpoints.allSatisfy { $0.app.text != "com.flood.n\(number)" } }
        )
        let gone = Seen.network("com.flood.n1", machine: "evil1.local")

        _ = table.apply(.lost(gone.id), at: now.addingTimeInterval(100))
        #expect(table.endpoints.contains { $0.app.text == "com.flood.n\(hidden)" && $0.state == .online })
        #expect(table.refusals.isEmpty)
    }

    @Test func `a newcomer of any address is listed in a full list`() {
        var table = EndpointTable()
        flood(&table, EndpointLimits.standard.total)
        let newcomer = Seen.network(address: "192.168.7.7")
        _ = table.apply(.seen(newcomer), at: now.addingTimeInterval(9_999))
        #expect(table.endpoint(seenAs: newcomer.id)?.state == .online)
    }

    @Test func `a flood of evicted apps frees no reserved ID of another app`() throws {
        var retired = RetiredIDs()
        let id: EndpointID = "shop-iphone"
        retired.add(id, for: IdentityKey.candidates(for: Seen.network()))
        for number in 0...(RetiredIDs.limit + 100) {
            retired.addEvicted(EndpointID("flood-\(number)"), for: [])
        }
        retired.free(except: [])
        #expect(retired.contains(id))
        #expect(!retired.isOverLimit)
    }

    @Test func `a flood leaves room for USB, configured and approved endpoints`() throws {
        var table = EndpointTable(Seen.network())
        let approved = try #require(table.endpoints.first)
        _ = table.setTrust(.approving(approved), of: approved.id, at: now)
        table.lose(Seen.network().id)

        flood(&table, EndpointLimits.standard.total + 500)
        #expect(table.endpoints.count <= EndpointLimits.standard.total - EndpointLimits.standard.reserve + 1)
        #expect(table[approved.id] != nil)
        #expect(table.refusals.count(by: .total) > 0)

        let cable = Seen.usb(udid: phone, port: 9_876)
        table.see(cable, Seen.config("written"))
        #expect(table.endpoint(seenAs: cable.id) != nil)
        #expect(table.endpoints.contains { $0.id.text == "written" })
    }

    @Test func `the offline endpoint that is gone longest makes room for a new one`() throws {
        var table = EndpointTable()
        flood(&table, EndpointLimits.standard.total - EndpointLimits.standard.reserve)
        #expect(table.endpoints.count == EndpointLimits.standard.total - EndpointLimits.standard.reserve)
        for number in [9, 7, 8] {
            let gone = Seen.network("com.flood.n\(number)", machine: "h\(number).local", address: "10.0.0.0")
            table.lose(gone.id)
        }

        let changes = table.apply(.seen(Seen.network(machine: "new.local")), at: now.addingTimeInterval(9_999))

        #expect(changes.count == 2)
        #expect(table.endpoints.contains { $0.id.text == "shop-new" })
        #expect(!table.endpoints.contains { $0.id.text == "n7-h7" })
        #expect(table.endpoints.contains { $0.id.text == "n8-h8" })
    }

    @Test func `a grant registers 32 different apps, also after a restart and after their removal`() throws {
        var table = EndpointTable()
        for number in 1...32 {
            let app = Seen.registered("app\(number)")
            table.see(app)
            table.lose(app.id)
        }
        for endpoint in table.endpoints.prefix(16) { _ = try table.removeUnseen(endpoint.id) }
        table = EndpointTable(records: table.records, retired: table.retired)

        table.see(Seen.registered("app33"))
        #expect(table.endpoint(seenAs: Seen.registered("app33").id) == nil)
        table.see(Seen.registered("app33", grant: "G11"))
        #expect(table.endpoint(seenAs: Seen.registered("app33", grant: "G11").id) != nil)
        for number in 1...32 { table.see(Seen.registered("app\(number)")) }
        #expect(table.endpoints.count == 33)
    }

    @Test func `the ID of a removed endpoint is assigned only to the same app`() throws {
        var table = EndpointTable(Seen.network(machine: "mac.local"))
        let id = try #require(table.endpoints.first).id
        table.lose(Seen.network(machine: "mac.local").id)
        _ = try table.removeUnseen(id)
        var next = EndpointTable(records: table.records, retired: table.retired)

        // Another bundle ID that would lead to the same endpoint ID.
        next.see(Seen.network("org.other.shop", machine: "mac.local"))
        #expect(next.endpoints.map(\.id.text) == ["shop-mac-2"])

        next.see(Seen.network(machine: "mac.local", port: 5_000))
        #expect(next.endpoints.map(\.id.text) == ["shop-mac", "shop-mac-2"])
        #expect(next[id]?.app.text == "com.example.shop")
    }
}
