import Model
import Testing

@testable import Team

@Suite struct TeamSnapshotTests {
    @Test func `the routes to a phone begin with those over USB, in the order of the hosts' names`() throws {
        var snapshot = TeamSnapshot(staleSince: nil)
        for (host, transport) in [("lab3", Device.Transport.usb), ("lab2", .network), ("lab2", .usb)] {
            snapshot.apply(.device(try Values.device(1, transport), on: try Values.host(host)))
        }

        let routes = snapshot.routes(to: try Values.udid(1))

        #expect(routes.map { "\($0.host.name) \($0.transport.rawValue)" } == ["lab2 usb", "lab3 usb", "lab2 network"])
        #expect(snapshot.devices.count == 3)
    }

    @Test func `an unplugged phone leaves nothing`() throws {
        var snapshot = TeamSnapshot(staleSince: nil)
        snapshot.apply(.device(try Values.device(1), on: try Values.host("lab2")))
        snapshot.apply(.deviceRemoved(try Values.udid(1), .usb, on: try Values.host("lab2")))

        #expect(snapshot == TeamSnapshot(staleSince: nil))
        #expect(snapshot.routes(to: try Values.udid(1)) == [])
    }

    @Test func `all routes have the time since which they may be outdated`() throws {
        var snapshot = TeamSnapshot(staleSince: nil)
        snapshot.apply(.device(try Values.device(1), on: try Values.host("lab2")))
        snapshot.apply(.stale(since: Values.date))

        #expect(snapshot.routes(to: try Values.udid(1)).map(\.host.staleSince) == [Values.date])
        #expect(snapshot.status(of: try Values.host("lab9")).staleSince == Values.date)
    }
}
