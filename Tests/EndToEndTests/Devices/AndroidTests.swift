import FoundationEssentials
import Model
import TestSupport
import Testing

/// Android phones behind the real adb server, beside iPhones behind the real usbmuxd.
@Suite(.needs(.adb, .usbmuxd, .python), .timeLimit(.minutes(3)), .scratchFolder) struct AndroidTests {
    private let scratch = ScratchFolder.current
    private let pixel = AndroidPhone("R58M12ABCDE", address: PhoneOptions.loopback)
    private let galaxy = AndroidPhone("RZ8N90XYZ12", attachment: .tcp)

    @Test func `two Android phones and two iPhones are in one list`() async throws {
        let phones = try await UsbmuxdFixture([Phones.one, Phones.two], in: scratch)
        let android = try await ADBFixture([pixel, galaxy], in: scratch)
        let broker = try await RunningBroker(in: scratch, phones: phones, android: android)

        let devices = try await eventually("all are listed") {
            let devices = try await broker.devices()
            return devices.count == 4 && devices.filter { $0.name?.text == "Pixel 8" }.count == 2 ? devices : nil
        }
        #expect(devices.filter { $0.platform == .ios }.map(\.udid.text).sorted() == [Phones.one, Phones.two].sorted())
        let shown = devices.filter { $0.platform == .android }
        #expect(shown.map(\.udid.text) == ["android-R58M12ABCDE", "android-RZ8N90XYZ12"])
        #expect(shown.allSatisfy { $0.isReady && $0.productType?.text == "Pixel 8" && $0.productVersion?.text == "15" })
        let table = try await broker.ask("devices")
        #expect(table.contains { $0.contains("R58M12ABCDE") && $0.contains("Android   Pixel 8 15") }, "\(table)")
        let status = try await broker.ask("status", "--json").joined()
        #expect(status.contains("\"adb\"") && status.contains("2 phones"), "\(status)")
    }

    @Test func `an app of an Android phone is an endpoint, reached by forward, stdio and its ID`() async throws {
        let app = try await SampleApp(address: pixel.address, in: scratch)
        let android = try await ADBFixture([pixel], in: scratch)
        let broker = try await RunningBroker(
            in: scratch,
            android: android,
            configuration: "[devices]\nprobe_ports = [\(app.port)]\n"
        )
        let udid = "android-R58M12ABCDE"

        let endpoint = try await eventually("the app is listed") {
            try await broker.endpoints().first { $0.state == .online }
        }
        #expect(endpoint.id.text == "shop-pixel-8" && endpoint.location.deviceName?.text == "Pixel 8")
        #expect(endpoint.sources == [.adb])
        let shown = try await broker.ask("show", "shop-pixel-8").joined(separator: "\n")
        #expect(shown.contains("Pixel 8 (\(udid))"), "\(shown)")

        let port = try await broker.forward("tcp:0:\(app.port)", "--device", udid)
        #expect(try await broker.fetch("/health", port: port).contains("\"status\""))
        let other = try await broker.forward("-e", "shop-pixel-8")
        #expect(try await broker.fetch("/health", port: other).contains("\"status\""))
        for target in ["\(udid):\(app.port)", "shop-pixel-8"] {
            let stdio = try await broker.start("stdio", target, input: .pipe)
            try stdio.write("GET /health HTTP/1.0\r\n\r\n")
            stdio.closeInput()
            try await stdio.waitForLine("\"status\"")
            #expect(try await stdio.exitStatus() == .exited(0))
        }

        try await android.restart()
        try await eventually(within: .seconds(2), "the tunnel is back") {
            (try? await broker.fetch("/health", port: port))?.contains("\"status\"") == true
        }
    }

    @Test func `the usbmuxd-compatible server and iproxy know iPhones only`() async throws {
        let phones = try await UsbmuxdFixture([Phones.one], in: scratch)
        let android = try await ADBFixture([pixel], in: scratch)
        let socket = scratch.file("served")
        let broker = try await RunningBroker(
            in: scratch,
            phones: phones,
            android: android,
            configuration: "[devices]\nserve_usbmuxd = \"unix:\(socket)\"\n"
        )
        try await eventually("both are listed") { try await broker.devices().count == 2 }
        #expect(Array(try MuxPeer(to: socket).devices().keys) == [Phones.one])
        let iproxy = try await broker.start("iproxy", "0:9", "-u", "android-R58M12ABCDE")
        #expect(try await iproxy.exitStatus() != .exited(0))
    }
}
