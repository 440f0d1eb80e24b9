import Model
import Samples
import SystemIO
import TestSupport
import Testing

@testable import Apps

/// A port in use is not probed, because some servers accept one client and drop the old one.
@Suite struct RouteUseCounterTests {
    private let route: Route

    init() throws { route = .usb(USBRoute(udid: "00008030-001A2B3C4D5E6F70", port: 9_876)) }

    @Test func `a port is in use until its last stream is closed`() async throws {
        let dialer = TransportPlanner(network: FakeDialer.silent(), usb: FakeDialer.connected(), debugTools: nil)
        #expect(!dialer.uses.contains(route))

        let first = try await dialer.dial(route)
        let second = try await dialer.dial(route)
        _ = consume first
        #expect(dialer.uses.contains(route))

        _ = consume second
        #expect(!dialer.uses.contains(route))
    }

    @Test func `a port is in use while it is dialled`() async throws {
        let usb = FakeDialer.silent()
        let dialer = TransportPlanner(network: FakeDialer.silent(), usb: usb, debugTools: nil)
        await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { _ = try await dialer.dial(route) }
            for await _ in usb.begun.stream { break }
            #expect(dialer.uses.contains(route))
            group.cancelAll()
        }
        #expect(!dialer.uses.contains(route))
    }

    @Test func `a network port is in use while a connection is open, under any name of its host`() async throws {
        func route(_ host: String) -> Route {
            .network(NetworkRoute(address: "192.168.1.2", port: 9_876, interface: host, machine: SanitizedText(host)))
        }
        let dialer = TransportPlanner(network: FakeDialer.connected(), usb: nil, debugTools: nil)

        let connection = try await dialer.dial(route("one"))
        #expect(dialer.uses.contains(route("other")))

        _ = consume connection
        #expect(!dialer.uses.contains(route("one")))
    }

    @Test func `a network port that does not answer is not in use`() async throws {
        let network = FakeDialer.silent()
        let dialer = TransportPlanner(network: network, usb: nil, debugTools: nil)
        let route = Route.network(NetworkRoute(address: "192.168.1.2", port: 9_876))
        await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { _ = try await dialer.dial(route) }
            for await _ in network.begun.stream { break }
            #expect(!dialer.uses.contains(route))
            group.cancelAll()
        }
    }
}
