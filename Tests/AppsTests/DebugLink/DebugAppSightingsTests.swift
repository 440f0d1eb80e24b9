import Foundation
import Model
import SystemIO
import Testing

@testable import Apps

@Suite struct DebugAppSightingsTests {
    private func app(_ id: Int, at address: UInt32 = 0x0A63_0001, place: Int? = 1) -> DebugApp {
        DebugApp(id: id, peer: .ipv4(address, port: UInt16(50_000 + id)), place: place, connectedAt: Date())
    }

    private func seen(_ events: [SightingEvent]) -> [Sighting] {
        events.compactMap { if case .seen(let sighting) = $0 { sighting } else { nil } }
    }

    @Test func `an app that is launched again is the same sighting with another route`() {
        var sightings = DebugAppSightings()
        let first = seen(sightings.update([app(1), app(2, place: 2)]))
        #expect(first.map(\.id.key) == ["10.99.0.1#1", "10.99.0.1#2"])
        #expect(first.map(\.role.text) == ["", "2"])

        #expect(sightings.update([app(2, place: 2)]) == [.lost(first[0].id)])
        let again = seen(sightings.update([app(2, place: 2), app(3)]))
        #expect(again.map(\.id) == [first[0].id])
        #expect(again.map(\.routes) == [[.network(app(3).route)]])
    }

    @Test func `a client without a message is no sighting`() {
        var sightings = DebugAppSightings()

        #expect(sightings.update([app(1, place: nil)]) == [])
        #expect(seen(sightings.update([app(1)])).count == 1)
    }

    @Test func `an app whose next launch is connected already is not lost`() {
        var sightings = DebugAppSightings()
        let id = seen(sightings.update([app(1)])).map(\.id)

        let events = sightings.update([app(2)])
        #expect(seen(events).map(\.id) == id)
        #expect(events.count == 1)
    }

    @Test func `apps of two machines are two sightings, and no change is no event`() {
        var sightings = DebugAppSightings()
        let both = [app(1), app(2, at: 0x0A63_0002)]

        #expect(seen(sightings.update(both)).map(\.machine?.text) == ["10.99.0.1", "10.99.0.2"])
        #expect(sightings.update(both) == [])
    }
}
