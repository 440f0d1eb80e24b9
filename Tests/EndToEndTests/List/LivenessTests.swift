import Model
import TestSupport
import Testing

@Suite(.needs(.root, .namespaces, .avahi, .python), .scratchFolder) struct LivenessTests {
    private let scratch = ScratchFolder.current

    @Test func `an app that dies without goodbye is suspect within 5 s of a probe, offline 15 s later, and can return`()
        async throws
    {
        let network = try await MDNSNetwork(["here", "there", "far"], in: scratch)
        let (there, far) = (network.hosts[1], network.hosts[2])
        let broker = try await RunningBroker(in: scratch, on: network.hosts[0])
        let list = try await LiveList(of: broker)
        let crashing = try await SampleApp("com.example.crash", on: there, in: scratch)
        let vanishing = try await SampleApp("com.example.vanish", on: far, in: scratch)
        _ = try await crashing.advertise(through: there)
        _ = try await vanishing.advertise(through: far)
        let crash = try await list.first("one app is online") { Self.isOnline($0, "com.example.crash") }.endpoint.id
        let vanish = try await list.first("the other is online") { Self.isOnline($0, "com.example.vanish") }
            .endpoint.id

        // Addresses without an owner's approval are not probed.
        for id in [crash, vanish] { _ = try await broker.ask("approve", id.text) }
        // The advert of a crashed app stays, because its host is up; a host without link loses all adverts.
        var now = list.now
        try await crashing.quit()
        try await far.linkDown()
        let probe = ContinuousClock.now
        _ = try await broker.ask("show", vanish.text, "--probe")

        let doubts = try await list.first("no way leads there", from: now) { $0.id == vanish && $0.state == .suspect }
        #expect(doubts.time - probe < .seconds(5))
        let end = try await list.first("it is offline", from: now, within: .seconds(20)) {
            $0.id == vanish && $0.state == .offline
        }
        #expect(end.time - doubts.time < .seconds(15))
        // The regular probe, every 15 s, detects this one.
        let refused = try await list.first("nothing listens", from: now, within: .seconds(20)) {
            $0.id == crash && $0.state == .suspect
        }
        let gone = try await list.first("it is offline", from: refused.next, within: .seconds(16)) {
            $0.id == crash && $0.state == .offline
        }
        #expect(gone.time - refused.time < .seconds(15))
        #expect(gone.endpoint.reason?.contains("nothing listens on") == true)
        print(
            "unreachable: suspect after \(doubts.time - probe), offline after \(end.time - doubts.time) more;",
            "refused: offline after \(gone.time - refused.time)"
        )

        now = list.now
        _ = try await SampleApp("com.example.crash", port: crashing.port, on: there, in: scratch)
        try await far.linkUp()
        for id in [crash, vanish] {
            _ = try await list.first("\(id) is back", from: now, within: .seconds(20)) {
                $0.id == id && $0.state == .online
            }
        }
        #expect(try await broker.endpoints().count == 2)
    }

    /// True if the app is online on IPv4 and IPv6. A probe of a dead host must not wait for each address family in
    /// turn.
    private static func isOnline(_ endpoint: Endpoint, _ app: String) -> Bool {
        endpoint.app.text == app && endpoint.state == .online && endpoint.routes.count > 1
    }
}
