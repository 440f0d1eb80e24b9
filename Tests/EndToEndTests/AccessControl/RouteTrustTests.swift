import FoundationEssentials
import Model
import TestSupport
import Testing

/// A broker with a phone on USB, the phone's Wi-Fi side, and an attacker on the link.
@Suite(.serialized, .needs(.root, .namespaces, .avahi, .usbmuxd, .python), .timeLimit(.minutes(3)), .scratchFolder)
struct RouteTrustTests {
    private let scratch = ScratchFolder.current
    private static let phone = "00008030-001A2B3C4D5E6F70"

    private struct Scene {
        let here: AvahiHost
        let wifi: AvahiHost
        let thief: AvahiHost
        let rig: UsbmuxdFixture
        let broker: RunningBroker
        let list: LiveList

        init(probing port: UInt16, in scratch: ScratchFolder) async throws {
            let network = try await MDNSNetwork(["here", "wifi", "thief"], in: scratch)
            (here, wifi, thief) = (network.hosts[0], network.hosts[1], network.hosts[2])
            rig = try await UsbmuxdFixture(in: scratch)
            broker = try await RunningBroker(
                in: scratch,
                phones: rig,
                on: here,
                configuration: "[devices]\nprobe_ports = [\(port)]\n"
            )
            list = try await LiveList(of: broker)
        }

        func tell(_ app: SampleApp, _ id: EndpointID) async throws {
            try await broker.setSecret(try #require(app.token), of: id.text)
        }

        /// Returns the output of a call, regardless of its exit status.
        func call(_ id: EndpointID, _ tool: String = "launch_context", _ more: String...) async throws -> String {
            let calling = try await broker.start(["call", id.text, tool] + more)
            _ = try await calling.exitStatus()
            return calling.log
        }
    }

    private static func requests(_ app: SampleApp) -> [String] {
        app.program.output.filter { $0.hasPrefix("request:") || $0.hasPrefix("call:") }
    }

    @Test func `a forged advert gets no call, token, name or grant of an app on USB`() async throws {
        let cabled = try await SampleApp(
            version: "cable",
            mode: .ios,
            boot: "b1",
            address: PhoneOptions.loopback,
            in: scratch
        )
        let scene = try await Scene(probing: cabled.port, in: scratch)
        try await scene.rig.attach(Self.phone, .ofItsOwn)
        let seen = try await scene.list.first("the cabled app is online") { $0.state == .online }
        let id = seen.endpoint.id
        try await scene.tell(cabled, id)
        #expect(try await scene.call(id).contains(#""version": "cable""#))

        // The attacker copies all fields of the real advert and names an app that a grant covers.
        let forged = try await SampleApp(
            "com.example.bank",
            version: "thief",
            mode: .ios,
            token: cabled.token,
            boot: "b1",
            port: cabled.port,
            on: scene.thief,
            in: scratch
        )
        _ = try await forged.advertise(through: scene.thief)
        let other = try await scene.list.first("the forged advert is listed", from: seen.next) { endpoint in
            endpoint.routes.contains { $0.route.machine != nil }
        }
        #expect(other.endpoint.id != id, "the cabled app says that it is another app")

        // The owner's calls continue and do not approve the attacker's route.
        #expect(try await scene.call(id).contains(#""version": "cable""#))
        let port = try await scene.broker.forward("tcp:0", "--endpoint", id.text)
        try await scene.tell(cabled, id)
        let listed = try await scene.broker.endpoints()
        #expect(listed.first { $0.id == id }?.approvedApp?.text == "com.example.shop")
        #expect(!listed.contains { $0.approvedApp?.text == "com.example.bank" })
        let grant = try await scene.here.run(
            "python3",
            [Self.script, "bundle", scene.broker.socket, "7282", "com.example.bank"]
        )
        #expect(grant == ["[]"], "the grant for the forged app sees nothing")

        // Without USB the call waits for it, and the tunnel does not connect.
        try await scene.rig.detach(Self.phone)
        _ = try await scene.list.first("the phone is unplugged", from: other.next) {
            $0.id == id && $0.state == .offline
        }
        #expect(try await scene.call(id, "launch_context", "--wait", "0s").contains("was not reached"))
        let curl = try await scene.here.start("curl", ["-sS", "--max-time", "2", "http://127.0.0.1:\(port)/"])
        #expect(try await curl.exitStatus() != .exited(0))
        #expect(Self.requests(forged).isEmpty, "\(forged.program.log)")

        // The address needs a separate approval, which prints the address.
        let approved = try await scene.broker.ask("approve", other.endpoint.id.text).joined()
        #expect(approved.contains("10.99.0.3"), "\(approved)")
        #expect(try await scene.call(id, "launch_context", "--wait", "0s").contains("was not reached"))
        #expect(Self.requests(forged).allSatisfy { !$0.hasPrefix("call:") })
    }

    @Test func `a phone on Wi-Fi and another on USB with the same fixed port stay two apps`() async throws {
        let cabled = try await SampleApp(version: "cable", mode: .ios, address: PhoneOptions.loopback, in: scratch)
        let scene = try await Scene(probing: cabled.port, in: scratch)
        let wireless = try await SampleApp(version: "wifi", mode: .ios, port: cabled.port, on: scene.wifi, in: scratch)
        _ = try await wireless.advertise(through: scene.wifi)
        let seen = try await scene.list.first("the app on Wi-Fi is listed") { $0.state == .online }
        let id = seen.endpoint.id
        // No address is approved, so no connection was made; the port of a phone is probed only on request.
        #expect(Self.requests(wireless).isEmpty, "\(wireless.program.log)")
        _ = try await scene.broker.ask("approve", id.text)
        try await scene.tell(wireless, id)
        try await scene.rig.attach(Self.phone, .ofItsOwn)
        let both = try await scene.list.first("the other one is on the cable", from: seen.next) {
            $0.location.udid != nil && $0.state == .online
        }

        #expect(both.endpoint.id != id)
        #expect(try await scene.call(id).contains(#""version": "wifi""#))
        #expect(!Self.requests(cabled).contains { $0.hasPrefix("call:") }, "\(cabled.program.log)")
    }

    @Test func `a denied app gets no connection and does not ask again, also after a restart, until it is approved`()
        async throws
    {
        let scene = try await Scene(probing: 9_876, in: scratch)
        let shop = try await SampleApp(on: scene.wifi, in: scratch)
        _ = try await shop.advertise(through: scene.wifi)
        let seen = try await scene.list.first("the app is online") { $0.state == .online }
        let id = seen.endpoint.id
        func asks() async throws -> Bool {
            let socket = ["--unix-socket", scene.broker.socket]
            let problems = try await scene.here.run("curl", ["-sS"] + socket + ["http://localhost/v1/problems"])
            return problems.joined().contains("approval/pending")
        }
        #expect(try await asks())

        _ = try await scene.broker.ask("deny", id.text)
        try await scene.broker.restart()
        try await eventually("it is listed as denied") {
            try await scene.broker.endpoints().contains { $0.id == id && $0.state == .online && $0.approval == .denied }
        }
        #expect(try await !asks())
        #expect(try await scene.broker.ask("show", id.text).contains { $0.contains("denied      by user 0") })
        #expect(try await scene.call(id, "launch_context", "--wait", "0s").contains("an owner has denied \(id)"))
        #expect(Self.requests(shop).isEmpty, "\(shop.program.log)")

        _ = try await scene.broker.ask("approve", id.text)
        #expect(try await scene.call(id).contains("com.example.shop"))
    }

    @Test func `another app at an approved address gets no call, and its endpoint becomes changed`() async throws {
        let scene = try await Scene(probing: 9_876, in: scratch)
        let shop = try await SampleApp(on: scene.wifi, in: scratch)
        _ = try await shop.advertise(through: scene.wifi)
        let seen = try await scene.list.first("the app is online") { $0.state == .online }
        let id = seen.endpoint.id
        _ = try await scene.broker.ask("approve", id.text)
        #expect(try await scene.call(id).contains("com.example.shop"))

        // The app quits, and another app takes its port before the advert is removed.
        try await shop.quit()
        // No event marks the end of an epoch, which is 250 ms after the last response.
        try await Task.sleep(for: .milliseconds(300))
        let bank = try await SampleApp("com.example.bank", port: shop.port, on: scene.wifi, in: scratch)
        let refused = try await scene.call(id, "tap_element", "element_id=x")
        #expect(refused.contains("com.example.bank"), "\(refused)")
        #expect(!bank.program.output.contains { $0.hasPrefix("call: tap_element") }, "\(bank.program.log)")
        _ = try await scene.list.first("it is changed", from: seen.next) {
            $0.id == id && $0.approval == .changed && $0.routes.contains { $0.mismatch?.text == "com.example.bank" }
        }
        let again = try await scene.call(id, "tap_element", "element_id=x")
        #expect(again.contains("com.example.bank"), "\(again)")

        // The original app returns, and the owner approves it again.
        try await bank.quit()
        _ = try await SampleApp(port: shop.port, on: scene.wifi, in: scratch)
        _ = try await scene.broker.ask("approve", id.text)
        #expect(try await scene.call(id).contains("com.example.shop"))
    }

    @Test func `an advert for an off-link address is blocked with a reason`() async throws {
        let scene = try await Scene(probing: 9_876, in: scratch)
        for (name, address) in [("metadata", "169.254.169.254"), ("far", "192.0.2.7"), ("own", "10.99.0.1")] {
            try await scene.thief.start("avahi-publish-address", ["-R", "\(name).local", address])
                .waitForLine("Established under name")
            try await scene.thief.start(
                "avahi-publish-service",
                ["-H", "\(name).local", name, "_mcp._tcp", "80"]
            ).waitForLine("Established under name")
            let listed = try await scene.list.first("\(name) is listed") { $0.name.text == name }
            #expect(listed.endpoint.state == .blocked)
            #expect(listed.endpoint.reason?.contains(address) == true, "\(listed.endpoint)")
            #expect(listed.endpoint.routes.isEmpty)
            let approving = try await scene.broker.start("approve", listed.endpoint.id.text)
            #expect(try await approving.exitStatus() != .exited(0))
        }
    }

    private static let script = String(#filePath.dropLast("RouteTrustTests.swift".count)) + "impersonation.py"
}
