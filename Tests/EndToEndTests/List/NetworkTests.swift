import Model
import TestSupport
import Testing

@Suite(.needs(.root, .namespaces, .avahi, .python), .scratchFolder) struct NetworkTests {
    private let scratch = ScratchFolder.current

    @Test func `endpoints that a link outage removes return with the same ID`() async throws {
        let (here, there) = try await MDNSNetwork.pair("here", "there", in: scratch)
        let broker = try await RunningBroker(in: scratch, on: here)
        let list = try await LiveList(of: broker)
        let app = try await SampleApp(on: there, in: scratch)
        _ = try await app.advertise(through: there)
        let first = try await list.first("the app is online") { $0.state == .online && $0.routes.count > 1 }
        let id = first.endpoint.id

        try await here.linkDown()
        let away = try await list.first("it is away", from: first.next) { $0.id == id && $0.state != .online }
        #expect(away.endpoint.reason != nil)
        try await here.linkUp()

        _ = try await list.first("it is back", from: away.next) { $0.id == id && $0.state == .online }
        #expect(try await broker.endpoints().map(\.id) == [id])
    }

    @Test func `the adverts of one app on all interfaces are one endpoint, and equal apps on other hosts are others`()
        async throws
    {
        let network = try await MDNSNetwork(
            ["here", "there", "other"],
            in: scratch,
            settings: ["allow-interfaces": "eth0,eth1"]
        )
        let (here, there, other) = (network.hosts[0], network.hosts[1], network.hosts[2])
        try await Self.joinDirectly(here, there)
        try await there.run("ip", ["addr", "add", "10.99.7.7/24", "dev", "eth0"])
        let broker = try await RunningBroker(in: scratch, on: here)
        let list = try await LiveList(of: broker)
        // The same app with the same bundle identifier on two hosts, and a service on each that shares only the
        // name.
        let apps = [try await SampleApp(on: there, in: scratch), try await SampleApp(on: other, in: scratch)]
        _ = try await apps[0].advertise(through: there)
        _ = try await apps[1].advertise(through: other)
        for host in [there, other] {
            try await host.start("avahi-publish-service", ["Lab", "_debug._tcp", "4711"])
                .waitForLine("Established under name")
        }

        let row = try await list.first("every way to the app is known") { endpoint in
            let interfaces = endpoint.routes.map { route in
                if case .network(let lan) = route.route {
                    "\(lan.interface ?? "")\(lan.address.contains(":") ? 6 : 4)"
                } else {
                    ""
                }
            }
            return Set(["eth04", "eth06", "eth14", "eth16"]).isSubset(of: interfaces)
        }
        // The host's other address is not on a link of the broker.
        #expect(!row.endpoint.routes.contains { $0.description.hasPrefix("10.99.7.7:") })
        _ = try await list.first("the last twin is there") { $0.name.text == "Lab #2" }

        let rows = try await broker.endpoints()
        #expect(row.endpoint.app.text == "com.example.shop")
        #expect(rows.count == 4, "\(rows.map(\.id))")
        #expect(
            Set(rows.map { "\($0.app) on \($0.location.machine?.text ?? "")" }) == [
                "com.example.shop on there.local", "com.example.shop on other.local", "Lab on there.local",
                "Lab #2 on other.local",
            ]
        )
        try await broker.restart()
        try await eventually("all four are online under the same ids") {
            let again = try await broker.endpoints().filter { !$0.routes.isEmpty }
            return again.map(\.id) == rows.map(\.id) && again.map(\.location.machine) == rows.map(\.location.machine)
        }

        // Hosts on separate links see no name conflict.
        try await there.linkDown()
        for host in [there, other] {
            try await host.start("avahi-publish-service", ["Twin", "_debug._tcp", "4712"])
                .waitForLine("Established under name 'Twin'")
        }
        try await eventually("twins of one name are two rows") {
            let twins = try await broker.endpoints().filter { $0.name.text == "Twin" }
            return Set(twins.map { $0.location.machine?.text }) == ["there.local", "other.local"]
        }
    }

    /// Adds a second link between two hosts.
    private static func joinDirectly(_ one: AvahiHost, _ other: AvahiHost) async throws {
        let peer = "\(other.namespace.processID)"
        try await one.run("ip", ["link", "add", "eth1", "type", "veth", "peer", "name", "eth1", "netns", peer])
        for (host, address) in [(one, "10.98.0.1/24"), (other, "10.98.0.2/24")] {
            let script = """
                [ ! -e /proc/sys/net/ipv6 ] || echo 0 >/proc/sys/net/ipv6/conf/eth1/accept_dad
                ip addr add \(address) dev eth1
                ip link set eth1 up
                """
            try await host.run("sh", ["-ec", script])
        }
    }
}
