import FoundationEssentials
import Model
import TestSupport
import Testing

/// One phone with one app on Wi-Fi and on the cable, and a machine that announces the phone's name.
@Suite(.serialized, .needs(.root, .namespaces, .avahi, .usbmuxd, .python), .timeLimit(.minutes(3)), .scratchFolder)
struct SameAppTests {
    private let scratch = ScratchFolder.current
    private static let phone = "00008030-001A2B3C4D5E6F70"

    private static func requests(_ app: SampleApp) -> [String] {
        app.program.output.filter { $0.hasPrefix("request:") || $0.hasPrefix("call:") }
    }

    @Test func `Wi-Fi and cable of a phone are possibly one app, and one endpoint once an owner says so`() async throws
    {
        let network = try await MDNSNetwork(["here", "Annas-iPhone", "annas-iphone-7"], in: scratch)
        let cabled = try await SampleApp(version: "cable", address: PhoneOptions.loopback, in: scratch)
        let wireless = try await SampleApp(version: "wifi", on: network.hosts[1], in: scratch)
        let forged = try await SampleApp(version: "thief", on: network.hosts[2], in: scratch)
        let rig = try await UsbmuxdFixture(in: scratch)
        var options = PhoneOptions.ofItsOwn
        options.lockdown = try LockdownServer(name: "Anna’s iPhone", in: scratch)
        try await rig.attach(Self.phone, options)
        let broker = try await RunningBroker(
            in: scratch,
            phones: rig,
            on: network.hosts[0],
            configuration: "[devices]\nprobe_ports = [\(cabled.port)]\n"
        )
        for (app, host) in [(wireless, network.hosts[1]), (forged, network.hosts[2])] {
            _ = try await app.advertise(through: host)
        }
        let listed = try await eventually("the cabled app names both advertisements") {
            let endpoints = try await broker.endpoints()
            return endpoints.contains { $0.possiblySameAs?.count == 2 } ? endpoints : nil
        }
        let cable = try #require(listed.first { $0.location.udid != nil })
        let wifi = try #require(listed.first { $0.routes.contains { $0.route.address == "10.99.0.2" } })
        let thief = try #require(listed.first { $0.routes.contains { $0.route.address == "10.99.0.3" } })
        #expect(wifi.possiblySameAs == [cable.id] && thief.possiblySameAs == [cable.id])
        let table = try await broker.ask("list").joined(separator: "\n")
        #expect(table.contains("Possibly the same app: \(cable.id), "), "\(table)")

        // The hint opens no route.
        #expect(cable.routes.count == 1 && listed.filter { $0.approval == .approved }.map(\.id) == [cable.id])
        let refused = try await broker.start("call", wifi.id.text, "launch_context", "--wait", "0s")
        #expect(try await refused.exitStatus() != .exited(0))
        #expect(Self.requests(wireless).isEmpty && Self.requests(forged).isEmpty)

        let approved = try await broker.ask("approve", cable.id.text, "--address", "10.99.0.2").joined()
        #expect(approved.contains("\(cable.id) at 10.99.0.2"), "\(approved)")
        let joined = try await broker.endpoints()
        #expect(joined.count == 2)
        let one = try #require(joined.first { $0.id == cable.id })
        #expect(one.approvedRoutes.count == 2 && one.possiblySameAs == [thief.id])

        // The ID of the advertisement leads to the app, over the cable and without the cable.
        let port = try await broker.forward("tcp:0", "--endpoint", wifi.id.text)
        let overCable = try await broker.ask("call", wifi.id.text, "launch_context").joined()
        #expect(overCable.contains(#""version": "cable""#), "\(overCable)")
        try await rig.detach(Self.phone)
        try await eventually("the call goes over Wi-Fi") {
            try await broker.ask("call", wifi.id.text, "launch_context").joined().contains(#""version": "wifi""#)
        }
        let url = "http://127.0.0.1:\(port)/health"
        let health = try await network.hosts[0].run("curl", ["-sS", "--max-time", "5", url]).joined()
        #expect(health.contains("\"port\": \(wireless.port)"), "\(health)")
        #expect(Self.requests(forged).isEmpty, "\(forged.program.log)")
    }

    @Test func `an address that is approved for the advertisement does not move to the cabled app`() async throws {
        let network = try await MDNSNetwork(["here", "annas-iphone"], in: scratch)
        let cabled = try await SampleApp(boot: "b1", address: PhoneOptions.loopback, in: scratch)
        let wireless = try await SampleApp(boot: "b1", on: network.hosts[1], in: scratch)
        let rig = try await UsbmuxdFixture(in: scratch)
        let broker = try await RunningBroker(
            in: scratch,
            phones: rig,
            on: network.hosts[0],
            configuration: "[devices]\nprobe_ports = [\(cabled.port)]\n"
        )
        _ = try await wireless.advertise(through: network.hosts[1])
        let wifi = try await eventually("the advertisement is listed") {
            try await broker.endpoints().first { $0.state == .online }
        }
        _ = try await broker.ask("approve", wifi.id.text)
        try await rig.attach(Self.phone, .ofItsOwn)
        // Lists show both as one. Each keeps its own approval.
        let cable = try await eventually("both are one endpoint by their launch") {
            try await broker.endpoints().first { $0.combinedWith?.map(\.id) == [wifi.id] }
        }
        #expect(cable.location.udid != nil)

        let moving = try await broker.start("approve", cable.id.text, "--address", "10.99.0.2")
        #expect(try await moving.exitStatus() != .exited(0))
        #expect(moving.log.contains("patchbay unapprove \(wifi.id)"), "\(moving.log)")

        _ = try await broker.ask("unapprove", wifi.id.text)
        _ = try await broker.ask("approve", cable.id.text, "--address", "10.99.0.2")
        let joined = try await broker.endpoints()
        #expect(joined.map(\.id) == [cable.id] && joined.first?.approvedRoutes.count == 2, "\(joined)")
    }

    @Test func `two approved routes to one session token are one endpoint, each with its own approval`() async throws {
        let network = try await MDNSNetwork(["here", "annas-iphone", "thief"], in: scratch)
        let cabled = try await SampleApp(mode: .ios, address: PhoneOptions.loopback, in: scratch)
        let (token, port) = (try #require(cabled.token), cabled.port)
        // One app listens on both interfaces of a phone. Here two programs play it.
        let wireless = try await SampleApp(mode: .ios, token: token, port: port, on: network.hosts[1], in: scratch)
        let forged = try await SampleApp(mode: .ios, token: token, port: port, on: network.hosts[2], in: scratch)
        let rig = try await UsbmuxdFixture(in: scratch)
        let broker = try await RunningBroker(
            in: scratch,
            phones: rig,
            on: network.hosts[0],
            configuration: "[devices]\nprobe_ports = [\(port)]\n"
        )
        for (app, host) in [(wireless, network.hosts[1]), (forged, network.hosts[2])] {
            _ = try await app.advertise(through: host)
        }
        try await rig.attach(Self.phone, .ofItsOwn)
        let listed = try await eventually("all three are listed") {
            let endpoints = try await broker.endpoints()
            return endpoints.count == 3 ? endpoints : nil
        }
        let cable = try #require(listed.first { $0.location.udid != nil })
        let wifi = try #require(listed.first { $0.routes.contains { $0.route.address == "10.99.0.2" } })
        _ = try await broker.ask("approve", wifi.id.text)
        try await broker.setSecret(token, of: cable.id.text)
        #expect(try await broker.endpoints().count == 3, "the advertisement has no token yet")
        try await broker.setSecret(token, of: wifi.id.text)

        let joined: Endpoint? = try? await eventually("both are one endpoint") { () async throws -> Endpoint? in
            let endpoints = try await broker.endpoints()
            return endpoints.count == 2 ? endpoints.first { $0.id == cable.id } : nil
        }
        if joined == nil { Issue.record("\(try await broker.ask("list", "--json")) \(broker.daemon.log)") }
        let one = try #require(joined)
        #expect(one.combinedWith?.map(\.id) == [wifi.id])
        // The link-local address may be announced after the approval.
        let proved = one.routes.filter { !$0.route.isNetwork || $0.route.address == "10.99.0.2" }
        #expect(proved.count == 2 && proved.allSatisfy { $0.isApproved && $0.isSecretHeld }, "\(one.routes)")
        #expect(Self.requests(forged).isEmpty, "\(forged.program.log)")

        // Each ID leads over its own route.
        _ = try await broker.ask("call", wifi.id.text, "get_screen")
        _ = try await broker.ask("call", cable.id.text, "get_elements")
        #expect(wireless.program.output.contains("call: get_screen"))
        #expect(cabled.program.output.contains("call: get_elements"))
        #expect(!wireless.program.output.contains("call: get_elements"))
        let shown = try await broker.ask("show", cable.id.text).joined(separator: "\n")
        #expect(shown.contains("used as \(wifi.id)"), "\(shown)")

        // Without its approval, the advertisement is separate and pending, and the cable stays approved.
        _ = try await broker.ask("unapprove", wifi.id.text)
        let separate = try await broker.endpoints()
        #expect(separate.count == 3)
        #expect(separate.filter { $0.approval == .approved }.map(\.id) == [cable.id])
        #expect(Self.requests(forged).isEmpty, "\(forged.program.log)")
    }
}
