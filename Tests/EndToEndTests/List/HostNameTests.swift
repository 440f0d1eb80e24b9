import Model
import TestSupport
import Testing

/// Hosts whose responder has another name after a while, with the real avahi-daemon.
@Suite(.needs(.root, .namespaces, .avahi, .python), .scratchFolder) struct HostNameTests {
    private let scratch = ScratchFolder.current

    @Test(arguments: [
        ["canidae", "canidae5045"], ["mac", "mac-2"],
        [
            "Android_0a1b2c3d4e5f60718293a4b5c6d7e8f9", "Android_ffeeddccbbaa99887766554433221100",
            "Android_0123456789abcdef0123456789abcdef",
        ],
    ])
    func `an approved app keeps its ID and approval at each launch when its host has another name`(names: [String])
        async throws
    {
        let (here, there) = try await MDNSNetwork.pair("here", "there", in: scratch)
        let broker = try await RunningBroker(in: scratch, on: here)
        let list = try await LiveList(of: broker)
        var id: EndpointID?
        for name in names {
            try await there.run("avahi-set-host-name", [name])
            let start = list.now
            let app = try await SampleApp(on: there, in: scratch)
            let publisher = try await app.advertise(through: there)
            let seen = try await list.first("the app is online at \(name)", from: start) { endpoint in
                endpoint.state == .online && endpoint.location.machine?.text == "\(name).local"
                    && endpoint.routes.contains { $0.port == app.port }
            }
            if let id {
                #expect(seen.endpoint.id == id)
            } else {
                id = seen.endpoint.id
                _ = try await broker.ask("approve", seen.endpoint.id.text)
            }
            try await eventually("its ID, its approval and its address are known") {
                let rows = try await broker.endpoints()
                return rows.map(\.id) == [seen.endpoint.id] && rows.map(\.approval) == [.approved]
                    && rows[0].approvedRoutes.contains { $0.port == app.port }
            }
            publisher.kill()
            try await app.quit()
            _ = try await list.first("it is offline", from: seen.next) { $0.state == .offline }
        }
    }

    @Test func `an approved app keeps its ID while it runs and its host is renamed`() async throws {
        let (here, there) = try await MDNSNetwork.pair("here", "canidae", in: scratch)
        let broker = try await RunningBroker(in: scratch, on: here)
        let list = try await LiveList(of: broker)
        let app = try await SampleApp(on: there, in: scratch)
        _ = try await app.advertise(through: there)
        let seen = try await list.first("it has both IP versions") { $0.routes.count > 1 }
        _ = try await broker.ask("approve", seen.endpoint.id.text)

        try await there.run("avahi-set-host-name", ["canidae5045"])
        try await eventually(within: .seconds(20), "all routes have the new name") {
            let rows = try await broker.endpoints()
            return rows.map(\.id) == [seen.endpoint.id] && rows[0].routes.count > 1
                && rows[0].routes.allSatisfy { $0.route.machine?.text == "canidae5045.local" }
        }
        #expect(try await broker.endpoints().map(\.approval) == [.approved])
    }

    @Test func `two phones with numbers in their names have an ID each, and each gets its own back`() async throws {
        let network = try await MDNSNetwork(["here", "iPhone-12", "iPhone-15"], in: scratch)
        let here = network.hosts[0]
        let broker = try await RunningBroker(in: scratch, on: here)
        let list = try await LiveList(of: broker)
        for (host, id) in zip([1, 2, 1].map { network.hosts[$0] }, ["12", "15", "12"].map { "shop-iphone-\($0)" }) {
            let start = list.now
            let app = try await SampleApp(on: host, in: scratch)
            let publisher = try await app.advertise(through: host)
            let seen = try await list.first("\(id) is online", from: start) {
                $0.state == .online && $0.location.machine?.text == "\(host.name).local"
            }
            #expect(seen.endpoint.id.text == id)
            if try await broker.endpoints().count == 1 { _ = try await broker.ask("approve", id) }
            publisher.kill()
            try await app.quit()
            _ = try await list.first("it is offline", from: seen.next) { $0.state == .offline }
        }
        #expect(try await broker.endpoints().map(\.approval) == [.approved, .pending])
    }

    @Test func `a host name with an apostrophe and a space is readable, and its long TXT record keeps the bundle ID`()
        async throws
    {
        let host = try await AvahiHost(in: scratch)
        let broker = try await RunningBroker(in: scratch, on: host)
        let instance = "'demo', '_appreveal', '_tcp', 'local'"
        try await RawAnnouncement.send(
            """
            [(('_appreveal', '_tcp', 'local'), PTR, 120, name(\(instance))),
             ((\(instance)), SRV, 120, srv(4711, 'Anna\\u2019s iPhone', 'local')),
             ((\(instance)), TXT, 120, txt(*['note%d=' % i + 'x' * 200 for i in range(8)], 'bundleId=com.example.shop')),
             (('Anna\\u2019s iPhone', 'local'), A, 120, bytes([127, 0, 0, 1]))]
            """,
            on: host
        )

        try await eventually("its name is decoded") {
            try await broker.endpoints().map(\.location.machine?.text) == ["Anna’s iPhone.local"]
        }
        let endpoint = try #require(try await broker.endpoints().first)
        #expect(endpoint.id.text == "shop-annas-iphone")
        #expect(endpoint.app.text == "com.example.shop")
        #expect(endpoint.txtTruncated == true)
    }
}
