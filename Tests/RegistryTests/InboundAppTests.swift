import FoundationEssentials
import Model
import Testing

@testable import Registry

/// Apps that connected to the state debugger.
@Suite struct InboundAppTests {
    private func app(
        port: UInt16,
        at address: String = "10.0.0.2",
        place: Int = 1,
        _ availability: Sighting.Availability = .available
    ) -> Sighting {
        let machine = SanitizedText(address)
        return Sighting(
            id: Sighting.ID(source: .debuglink, key: "\(address)#\(place)"),
            kind: .debug,
            app: SanitizedText("debug-app"),
            appIsBundleID: false,
            name: SanitizedText("app on \(address)"),
            machine: machine,
            role: SanitizedText(place > 1 ? "\(place)" : ""),
            routes: [.network(NetworkRoute(address: address, port: port, machine: machine, isInbound: true))],
            availability: availability
        )
    }

    @Test func `an app that is launched again keeps its ID and approval`() throws {
        var table = EndpointTable(app(port: 5_001))
        let first = try #require(table.endpoints.first)
        #expect(first.id.text == "debug-app-10-0-0-2")
        #expect(first.approval == .pending)
        _ = table.setTrust(.approving(first), of: first.id, at: now)

        table.lose(app(port: 5_001).id)
        #expect(table.endpoints.map(\.state) == [.offline])
        table.see(app(port: 5_002))
        #expect(table.endpoints.map(\.id) == [first.id])
        #expect(table.endpoints.map(\.approval) == [.approved])

        // The next launch may connect before the end of the one before.
        table.see(app(port: 5_003))
        #expect(table.endpoints.map(\.id) == [first.id])
        #expect(table.endpoints.flatMap(\.routes).map(\.port) == [5_003])
    }

    @Test func `an app with held states is offline with the reason, keeps its route, and can be removed`() throws {
        var table = EndpointTable(app(port: 5_001))
        let id = try #require(table.endpoints.first?.id)
        #expect(throws: RegistryError.stillPresent(id)) { try table.removeUnseen(id) }

        table.see(app(port: 5_001, .suspect("stopped in a frame")))
        #expect(table[id]?.state == .suspect)
        #expect(table[id]?.reason == "stopped in a frame")
        table.see(app(port: 5_001, .offline("it disconnected")))

        #expect(table[id]?.state == .offline)
        #expect(table[id]?.reason == "it disconnected")
        #expect(table[id]?.routes.map(\.port) == [5_001])
        // An answer from the held states is no sign of life.
        #expect(table.report(nil, of: id, at: Date(timeIntervalSince1970: 2_000)) == [])
        #expect(table[id]?.lastSeenAt == now)

        _ = try table.removeUnseen(id)
        #expect(table.endpoints.isEmpty)
        table.lose(app(port: 5_001).id)
        table.see(app(port: 5_002))
        #expect(table.endpoints.map(\.state) == [.online])
    }

    @Test func `two apps of one machine need an approval each`() throws {
        var table = EndpointTable(app(port: 5_001))
        _ = table.setTrust(.approving(try #require(table.endpoints.first)), of: table.endpoints[0].id, at: now)
        table.see(app(port: 5_002, place: 2))

        #expect(table.endpoints.map(\.id.text) == ["debug-app-10-0-0-2", "debug-app-10-0-0-2-2"])
        #expect(table.endpoints.map(\.approval) == [.approved, .pending])
    }

    @Test func `apps of one address are limited like the adverts of one address`() {
        var table = EndpointTable()
        for place in 1...70 { table.see(app(port: UInt16(5_000 + place), place: place)) }

        #expect(table.endpoints.count == EndpointLimits.standard.perAddress)
    }
}
