import FoundationEssentials
import Model
import TestSupport
import Testing

/// Apps on a cable as Bonjour services of this machine, with the real avahi-daemon and usbmuxd.
@Suite(.serialized, .needs(.root, .namespaces, .avahi, .usbmuxd, .python), .timeLimit(.minutes(3)), .scratchFolder)
struct ReadvertiseTests {
    private let scratch = ScratchFolder.current
    private static let phone = "00008030-001A2B3C4D5E6F70"
    private static let type = "_appreveal._tcp"

    /// A service as avahi-browse prints it.
    private struct Service: Hashable {
        let isPresent: Bool
        let interface: String
        let name: String
        var address = ""
        var port = ""
        var txt = ""

        init?(_ line: String) {
            let fields = line.split(separator: ";", omittingEmptySubsequences: false).map(String.init)
            guard fields.count >= 6, ["=", "-"].contains(fields[0]), fields[2] == "IPv4" else { return nil }
            (isPresent, interface, name) = (fields[0] == "=", fields[1], fields[3])
            if fields.count >= 10 { (address, port, txt) = (fields[7], fields[8], fields[9...].joined(separator: ";")) }
        }
    }

    private struct Scene {
        let here: AvahiHost
        let wifi: AvahiHost
        let app: SampleApp
        let rig: UsbmuxdFixture
        let browse: Program

        init(in scratch: ScratchFolder) async throws {
            let network = try await MDNSNetwork(
                ["here", "wifi"],
                in: scratch,
                settings: ["allow-interfaces": "eth0,lo"]
            )
            (here, wifi) = (network.hosts[0], network.hosts[1])
            app = try await SampleApp(boot: "b1", address: PhoneOptions.loopback, in: scratch)
            rig = try await UsbmuxdFixture(in: scratch)
            try await rig.attach(ReadvertiseTests.phone, .ofItsOwn)
            browse = try await here.start("avahi-browse", ["-rpk", ReadvertiseTests.type])
        }

        func broker(in scratch: ScratchFolder, named name: String? = nil) async throws -> RunningBroker {
            try await RunningBroker(
                in: scratch,
                named: name,
                phones: rig,
                on: here,
                configuration: """
                    [devices]
                    probe_ports = [\(app.port)]
                    [discovery]
                    readvertise = ["usb"]
                    """
            )
        }

        /// Waits for a service after line `start` that matches.
        func service(
            _ promise: String,
            from start: Int = 0,
            where fits: @escaping @Sendable (Service) -> Bool
        ) async throws -> (Service, next: Int) {
            try await withDeadline(.seconds(20), { @Sendable [browse] in "\(promise): \(browse.log)" }) { [browse] in
                var next = start
                for await line in browse.transcript.elements(from: start) {
                    next += 1
                    if let service = Service(line.text), fits(service) { return (service, next) }
                }
                throw TestSupportError("avahi-browse ended: \(browse.log)")
            }
        }
    }

    @Test func `an app on a cable is announced to this machine only, through a guarded tunnel, and withdrawn with it`()
        async throws
    {
        let scene = try await Scene(in: scratch)
        let broker = try await scene.broker(in: scratch)
        let (service, next) = try await scene.service("the app is announced") { $0.isPresent }

        #expect(service.interface == "lo" && service.address == "127.0.0.1")
        #expect(service.name.contains("AppReveal-com"))
        for item in ["via=patchbay", "bundleId=com.example.shop", "boot=b1", "version=3.2.0"] {
            #expect(service.txt.contains("\"\(item)\""), "\(service.txt)")
        }
        let elsewhere = try await scene.wifi.run("avahi-browse", ["-rptk", Self.type])
        #expect(elsewhere.compactMap(Service.init).filter { $0.interface != "lo" }.isEmpty, "\(elsewhere)")

        let url = "http://127.0.0.1:\(service.port)/health"
        let health = try await scene.here.run("curl", ["-sS", "--max-time", "5", url])
        #expect(health.joined().contains(#""boot": "b1""#))
        let page = try await scene.here.run("curl", ["-sS", "--max-time", "5", "-H", "Origin: http://evil", url])
        #expect(!page.joined().contains("boot"), "\(page)")
        let foreign = try await scene.here.start(
            "setpriv",
            ["--reuid=65534", "--clear-groups", "curl", "-sS", "--max-time", "5", url]
        )
        #expect(try await foreign.exitStatus() != .exited(0), "\(foreign.log)")
        #expect(try await broker.endpoints().count == 1)

        try await scene.rig.detach(Self.phone)
        _ = try await scene.service("the announcement is withdrawn", from: next) { !$0.isPresent }
        try await eventually("the tunnel is closed") { try await broker.ask("tunnels", "--quiet").isEmpty }
    }

    @Test func `two brokers announce the app of one phone once each, and list neither announcement`() async throws {
        let scene = try await Scene(in: scratch)
        let brokers = [try await scene.broker(in: scratch), try await scene.broker(in: scratch, named: "other")]

        for broker in brokers {
            try await broker.daemon.waitForLine("another broker publishes it")
        }
        // An ordinary service that both list shows that both have handled the announcements.
        let late = try await SampleApp("com.example.late", on: scene.wifi, in: scratch)
        _ = try await late.advertise(through: scene.wifi)
        for broker in brokers {
            try await eventually("the other app is listed") {
                try await broker.endpoints().contains { $0.app.text == late.bundle && $0.state == .online }
            }
            let endpoints = try await broker.endpoints()
            #expect(endpoints.count == 2, "\(endpoints)")
            let shop = endpoints.first { $0.app.text == "com.example.shop" }
            #expect(shop?.routes.count == 1 && shop?.sources == [.usbmuxd], "\(endpoints)")
            #expect(try await broker.ask("advertisements", "--quiet").count == 1)
            #expect(try await broker.ask("tunnels", "--quiet").count == 1)
        }
    }

    @Test func `the announcement ends while the app announces the same launch on Wi-Fi`() async throws {
        let scene = try await Scene(in: scratch)
        let broker = try await scene.broker(in: scratch)
        let (service, published) = try await scene.service("the app is announced") {
            $0.isPresent && $0.interface == "lo"
        }

        let wireless = try await SampleApp(boot: "b1", port: scene.app.port, on: scene.wifi, in: scratch)
        let advert = try await wireless.advertise(through: scene.wifi)
        let (_, withdrawn) = try await scene.service("the announcement ends", from: published) {
            !$0.isPresent && $0.interface == "lo" && $0.name == service.name
        }
        let merged = try await broker.endpoints()
        #expect(merged.count == 1 && merged.first?.routes.contains { $0.route.isNetwork } == true, "\(merged)")

        advert.terminate()
        _ = try await scene.service("the app is announced again", from: withdrawn) {
            $0.isPresent && $0.interface == "lo" && $0.txt.contains("via=patchbay")
        }
    }

    @Test func `an owner who removes the tunnel of an announcement ends the announcement`() async throws {
        let scene = try await Scene(in: scratch)
        let broker = try await scene.broker(in: scratch)
        let (_, next) = try await scene.service("the app is announced") { $0.isPresent }

        let tunnel = try #require(try await broker.ask("tunnels", "--quiet").first)
        _ = try await broker.ask("tunnels", "rm", tunnel)

        _ = try await scene.service("the announcement is withdrawn", from: next) { !$0.isPresent }
        #expect(try await broker.ask("advertisements", "--quiet").isEmpty)
    }
}
