import FoundationEssentials
import Model
import Testing

@testable import Registry

@Suite struct LimitTests {
    private let now = Date(timeIntervalSince1970: 1_000)
    private let phone = UDID("00008030-001A2B3C4D5E6F70")

    /// Adverts of many apps, 50 at each address.
    private func flood(_ board: inout EndpointTable, _ count: Int) {
        for number in 1...count {
            let sighting = Seen.lan(
                "com.flood.n\(number)",
                host: "h\(number).local",
                port: UInt16(1_024 + number % 60_000),
                address: "10.0.\(number / 50 / 250).\(number / 50 % 250)"
            )
            _ = board.apply(.seen(sighting), at: now.addingTimeInterval(Double(number)))
        }
    }

    @Test func `one machine is held to its limit under however many host names it announces itself`() {
        var board = EndpointTable()
        for number in 1...200 {
            let flood = Seen.lan(
                "com.flood.n\(number)",
                host: "evil\(number).local",
                port: UInt16(1_024 + number),
                address: "192.168.1.66"
            )
            _ = board.apply(.seen(flood), at: now)
        }
        _ = board.apply(.seen(Seen.lan()), at: now)

        #expect(board.endpoints.count == EndpointTable.limitPerAddress + 1)
        #expect(board.refusals.total == 200 - UInt64(EndpointTable.limitPerAddress))
        #expect(board.endpoints.contains { $0.id.text == "shop-iphone" })
        #expect(board.refusals.count(by: .perAddress) == 200 - EndpointTable.limitPerAddress)
        #expect(board.refusals.count(by: .total) == 0)

        _ = board.apply(.sourceLost(.bonjour), at: now)
        #expect(board.refusals.isEmpty)
    }

    @Test func `a flood leaves room for cables, configured endpoints and what an owner approved`() throws {
        var board = EndpointTable()
        _ = board.apply(.seen(Seen.lan()), at: now)
        let approved = try #require(board.endpoints.first)
        _ = board.setTrust(.approving(approved), of: approved.id, at: now)
        _ = board.apply(.lost(Seen.lan().id), at: now)

        flood(&board, EndpointTable.limit + 500)
        #expect(board.endpoints.count <= EndpointTable.limit - EndpointTable.reserve + 1)
        #expect(board[approved.id] != nil)
        #expect(board.refusals.count(by: .total) > 0)

        let cable = Seen.usb(udid: try #require(phone), port: 9_876)
        _ = board.apply(.seen(cable), at: now)
        _ = board.apply(.seen(Seen.config("written")), at: now)
        #expect(board.endpoint(seenAs: cable.id) != nil)
        #expect(board.endpoints.contains { $0.id.text == "written" })
    }

    @Test func `an offline endpoint makes room for a new one, the one that is gone longest first`() throws {
        var board = EndpointTable()
        flood(&board, EndpointTable.limit - EndpointTable.reserve)
        #expect(board.endpoints.count == EndpointTable.limit - EndpointTable.reserve)
        for number in [9, 7, 8] {
            let gone = Seen.lan("com.flood.n\(number)", host: "h\(number).local", address: "10.0.0.0")
            _ = board.apply(.lost(gone.id), at: now)
        }

        let outcomes = board.apply(.seen(Seen.lan(host: "new.local")), at: now.addingTimeInterval(9_999))

        #expect(outcomes.count == 2)
        #expect(board.endpoints.contains { $0.id.text == "shop-new" })
        #expect(!board.endpoints.contains { $0.id.text == "n7-h7" })
        #expect(board.endpoints.contains { $0.id.text == "n8-h8" })
    }

    @Test func `the id of a forgotten endpoint goes to the same app again and to no other one`() throws {
        var board = EndpointTable()
        _ = board.apply(.seen(Seen.lan(host: "mac.local")), at: now)
        let id = try #require(board.endpoints.first).id
        _ = board.apply(.lost(Seen.lan(host: "mac.local").id), at: now)
        _ = try board.forget(id)
        var next = EndpointTable(records: board.records, retired: board.retired)

        // Another bundle whose id would read the same.
        _ = next.apply(.seen(Seen.lan("org.other.shop", host: "mac.local")), at: now)
        #expect(next.endpoints.map(\.id.text) == ["shop-mac-2"])

        _ = next.apply(.seen(Seen.lan(host: "mac.local", port: 5_000)), at: now)
        #expect(next.endpoints.map(\.id.text) == ["shop-mac", "shop-mac-2"])
        #expect(next[id]?.app.text == "com.example.shop")
    }
}
