import TestSupport
import Testing

@Suite(.needs(.namespaces, .avahi), .scratchFolder) struct AvahiHostTests {
    private let scratch = ScratchFolder.current

    @Test func `an advertisement of one program is resolved by another on the same host`() async throws {
        let host = try await AvahiHost(in: scratch)
        let app = try await SampleApp(in: scratch)
        _ = try await app.advertise(through: host)

        let lines = try await host.run("avahi-browse", ["-rpt", "_appreveal._tcp"])

        let resolved = try #require(lines.first { $0.hasPrefix("=;lo;IPv4;") })
        #expect(resolved.contains(";rig.local;"))
        #expect(resolved.contains(";\(app.port);"))
    }

    @Test func `avahi-daemon and the bus can be restarted after a kill`() async throws {
        let host = try await AvahiHost(in: scratch)
        try await host.restartAvahi()
        try await host.killBus()

        await #expect(throws: TestSupportError.self) { try await host.run("avahi-browse", ["-at"]) }

        try await host.startBus()
        try await host.startAvahi()
        try await host.run("avahi-browse", ["-at"])
    }

    @Test func `hosts of a network see each other until the link of one is down`() async throws {
        let network = try await MDNSNetwork(["alpha", "beta"], in: scratch)
        let (alpha, beta) = (network.hosts[0], network.hosts[1])
        let app = try await SampleApp(on: beta, in: scratch)
        _ = try await app.advertise(through: beta)

        let line = try await eventually("alpha resolves beta's app") {
            try await alpha.run("avahi-browse", ["-rpt", "_appreveal._tcp"]).first { $0.hasPrefix("=;eth0;IPv4;") }
        }
        #expect(line.contains(";beta.local;"))
        #expect(line.contains(";\(app.port);"))
        let health = try await alpha.run("curl", ["-s", "http://10.99.0.2:\(app.port)/health"])
        #expect(health.first?.contains("\"status\": \"ok\"") == true)

        try await beta.linkDown()

        await #expect(throws: TestSupportError.self) {
            try await alpha.run("curl", ["-s", "-m", "1", "http://10.99.0.2:\(app.port)/health"])
        }
    }

    @Test func `two separate hosts do not affect each other`() async throws {
        let first = try await AvahiHost("same", in: scratch)
        let second = try await AvahiHost("same", in: scratch)
        let publisher = try await SampleApp(in: scratch).advertise(through: first)

        let lines = try await second.run("avahi-browse", ["-rpt", "_appreveal._tcp"])

        #expect(lines == [])
        #expect(!publisher.output.contains { $0.contains("Collision") })
    }
}
