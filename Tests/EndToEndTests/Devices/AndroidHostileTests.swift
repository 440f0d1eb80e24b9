import FoundationEssentials
import Glibc
import Model
import SystemIO
import TestSupport
import Testing

/// Android phones and adb servers that send what no real one sends, beside phones that do not.
@Suite(.serialized, .needs(.adb, .usbmuxd, .python), .timeLimit(.minutes(3)), .scratchFolder)
struct AndroidHostileTests {
    private let scratch = ScratchFolder.current

    /// Checks for some seconds that a tunnel echoes at once, and that the broker neither grows nor computes.
    private func expectNoHarm(to port: UInt16, of broker: RunningBroker, _ what: String) async throws {
        let before = Footprint.now(of: broker.daemon.processID)
        let begin = ContinuousClock.now
        var slowest = Duration.zero
        while begin.duration(to: .now) < .seconds(4) {
            let start = ContinuousClock.now
            let stream = try await SocketStream.connect(to: .ipv4(INADDR_LOOPBACK, port: port))
            try await stream.send([1, 2, 3])
            #expect(try await stream.receive(3) == [1, 2, 3])
            slowest = max(slowest, start.duration(to: .now))
            try await Task.sleep(for: .milliseconds(50))
        }
        let after = Footprint.now(of: broker.daemon.processID)
        let percent = Double(after.ticks - before.ticks) / (begin.duration(to: .now) / .seconds(1))
        print(
            "\(what): \(percent) % of a core, KiB \(before.kilobytes) -> \(after.kilobytes), slowest echo \(slowest)"
        )
        #expect(percent < 60 && after.kilobytes < before.kilobytes + 32 << 10, "\(what)")
        #expect(slowest < .seconds(5), "\(what)")
        let start = ContinuousClock.now
        _ = try await broker.ask("devices", "--json")
        #expect(start.duration(to: .now) < .seconds(8), "\(what)")
    }

    @Test(arguments: AndroidPhone.Hostility.allCases)
    func `a phone that sends garbage, packets of 4 GB or endless answers harms no other phone`(
        hostility: AndroidPhone.Hostility
    ) async throws {
        let pixel = AndroidPhone("R58M12ABCDE", address: "127.0.9.1")
        var hostile = AndroidPhone("HOSTILE", address: "127.0.9.2")
        hostile.hostility = hostility
        let echo = try EchoServer(address: pixel.address, in: scratch)
        let android = try await ADBFixture([pixel], in: scratch)
        let broker = try await RunningBroker(in: scratch, android: android)
        let port = try await broker.forward("tcp:0:\(echo.port)", "--device", "android-R58M12ABCDE")

        try await android.attach(hostile)
        try await expectNoHarm(to: port, of: broker, "phone with \(hostility)")

        let devices = try await broker.devices()
        #expect(devices.contains { $0.udid.serial == "R58M12ABCDE" && $0.isReady })
        if hostility != .endless {
            #expect(!devices.contains { $0.udid.serial != "R58M12ABCDE" && $0.isReady }, "\(devices)")
        }
        #expect(broker.daemon.transcript.soFar.count < 200)
        // A server that the phone killed is another program's to start, and the tunnel is back with it.
        try await android.detach(hostile.key)
        try await android.restart()
        try await eventually("the tunnel is back") {
            let stream = try? await SocketStream.connect(to: .ipv4(INADDR_LOOPBACK, port: port))
            try? await stream?.send([1])
            return (try? await stream?.receive(1)) == [1]
        }
        try await expectNoHarm(to: port, of: broker, "after the phone")
    }

    @Test func `names with escapes, text direction and 10,000 letters are shown without them`() async throws {
        let name = "\u{1B}]0;evil\u{07}\u{202E}txt\u{2066}\u{9B}31m" + String(repeating: "W", count: 10_000)
        let app = try await SampleApp(address: "127.0.9.3", in: scratch)
        var named = AndroidPhone("R58M12ABCDE", address: "127.0.9.3")
        (named.name, named.release) = (name, name)
        var numbered = AndroidPhone(name)
        numbered.virtualDevice = name
        let android = try await ADBFixture([named, numbered], in: scratch)
        let broker = try await RunningBroker(
            in: scratch,
            android: android,
            configuration: "[devices]\nprobe_ports = [\(app.port)]\n"
        )
        let endpoint = try await eventually("the app is listed") {
            try await broker.endpoints().first { $0.state == .online }
        }
        try await eventually("both are listed") { try await broker.devices().count { $0.isReady } == 2 }
        for words in [
            ["devices"], ["devices", "--json"], ["list"], ["list", "--json"], ["show", endpoint.id.text], ["status"],
        ] {
            let output = try await Program.run(
                Executable.built("patchbay"),
                words,
                in: scratch,
                environment: ["PATCHBAY_SOCKET": broker.socket]
            ).joined(separator: " ")
            #expect(output.utf8.count < 8_000, "\(words): \(output.utf8.count)")
            let bad = output.unicodeScalars.first { scalar in
                scalar.value < 0x20 || (0x7F...0x9F).contains(scalar.value) || (0x202A...0x202E).contains(scalar.value)
                    || (0x2066...0x2069).contains(scalar.value)
            }
            #expect(bad == nil, "\(words): U+\(String(bad?.value ?? 0, radix: 16))")
        }
    }

    @Test(arguments: ScriptedADBServer.Hostility.allCases)
    func `an adb server that sends garbage, cut answers or lists and outputs without end is named, or harmless`(
        hostility: ScriptedADBServer.Hostility
    ) async throws {
        let server = try await ScriptedADBServer(
            "A device usb:1-1 model:Pixel_8 transport_id:1\nB device usb:1-2 model:Pixel_9 transport_id:2\n",
            hostility: hostility,
            in: scratch
        )
        let echo = try EchoServer(in: scratch)
        let phones = try await UsbmuxdFixture([Phones.one], in: scratch)
        let broker = try await RunningBroker(in: scratch, phones: phones, configuration: server.configuration)
        let port = try await broker.forward("0:\(echo.port)", "--device", Phones.one)

        try await expectNoHarm(to: port, of: broker, "server with \(hostility)")
        #expect(broker.daemon.transcript.soFar.count < 500)
        guard hostility == .garbage || hostility == .truncated else { return }
        let problem = hostility == .garbage ? "check which program listens on its port" : "within 5 s"
        try await eventually("status names the problem") {
            try await broker.ask("status").contains { $0.hasPrefix("warning: adb: ") && $0.contains(problem) }
        }
        let doctor = try await broker.start("doctor")
        _ = try await doctor.exitStatus()
        #expect(doctor.output.contains { $0.hasPrefix("warn") && $0.contains(problem) }, "\(doctor.log)")
    }
}
