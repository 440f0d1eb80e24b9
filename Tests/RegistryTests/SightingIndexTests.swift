import Model
import Samples
import Testing

@testable import Registry

@Suite struct SightingIndexTests {
    private let wired = Seen.network()
    private let wireless = Seen.network(interface: "wlan0", address: "192.168.2.20")
    private var server: ServerKey { ServerKey(of: wired) }
    private var port: ServerKey.PortKey { ServerKey.PortKey(kind: .appreveal, port: 4_000) }

    private func index(_ sightings: Sighting...) -> SightingIndex {
        var index = SightingIndex()
        for sighting in sightings { index.insert(sighting) }
        return index
    }

    @Test func `sightings on one server are found by server and port, in the order of their IDs`() {
        let index = index(wireless, wired)

        #expect(index.sightings(on: server) == [wired, wireless])
        #expect(index.servers(at: port) == [server])
        #expect(index.server(of: wireless.id) == server)
    }

    @Test func `only the last sighting takes its server with it`() {
        var index = index(wired, wireless)

        let first = index.remove(wired.id)
        #expect(first?.server == server && first?.isLast == false)
        #expect(index.servers(at: port) == [server])
        let second = index.remove(wireless.id)
        #expect(second?.server == server && second?.isLast == true)
        #expect(index.servers(at: port).isEmpty)
        let third = index.remove(wired.id)
        #expect(third == nil)
    }

    @Test func `a sighting is stale from the loss of its source until it is seen again`() throws {
        let cable = Seen.usb(udid: .sample)
        var index = index(wired, wireless, cable)

        #expect(Set(index.markStale(of: .bonjour)) == [wired.id, wireless.id])
        index.insert(wired)

        #expect(index.staleIDs(of: .bonjour) == [wireless.id])
        #expect(index.isStale(wireless.id) && !index.isStale(wired.id) && !index.isStale(cable.id))
    }
}
