import Model
import SystemIO
import TestSupport
import Testing

/// `patchbay reverse` with the real adb server and simulated phones, whose apps are clients on their loopback.
@Suite(.needs(.adb, .usbmuxd), .timeLimit(.minutes(3)), .scratchFolder) struct ReverseTests {
    private let scratch = ScratchFolder.current
    private let pixel = AndroidPhone("R58M12ABCDE")
    private let udid = "android-R58M12ABCDE"

    private func isOpen(_ port: UInt16) async -> Bool {
        await LoopbackClient.echoes(100_000, from: port, within: .seconds(5))
    }

    /// Runs `patchbay reverse` and expects its failure. Returns what it printed.
    private func failure(_ words: String..., of broker: RunningBroker) async throws -> String {
        let command = try await broker.start(["reverse"] + words)
        #expect(try await command.exitStatus() != .exited(0), "\(words)")
        return command.log
    }

    @Test func `an app of the phone reaches this machine, also after a replug and restarts of adb and the broker`()
        async throws
    {
        let server = try EchoServer(in: scratch)
        let port = try FreePorts.take()[0]
        let android = try await ADBFixture([pixel], in: scratch)
        let broker = try await RunningBroker(in: scratch, android: android)
        try await eventually("the phone is listed") { try await broker.devices().count == 1 }

        let words = ["tcp:\(port)", "tcp:\(server.port)"]
        let opened = try await broker.ask("reverse", words[0], words[1])
        let line = "\(udid) \(words[0]) \(words[1]) active"
        #expect(opened == [line])
        #expect(await isOpen(port))
        #expect(try await broker.ask("reverse", "--list") == [line])

        try await android.detach(pixel.serial)
        try await eventually("it waits") { try await broker.ask("reverse", "--list").joined().contains("waiting") }
        #expect(await !isOpen(port))
        try await android.attach(pixel)
        try await eventually(within: .seconds(2), "it is open after a replug") { await isOpen(port) }
        try await android.restart()
        try await eventually(within: .seconds(2), "it is open after a restart of adb") { await isOpen(port) }
        for isKilled in [false, true] {
            try await broker.restart(isKilled: isKilled)
            try await eventually("it is open after a restart of the broker") {
                try await broker.ask("reverse", "--list") == [line]
            }
            #expect(await isOpen(port))
        }

        #expect(try await broker.ask("reverse", "--remove", words[0]) == ["Removed \(words[0]) of \(udid)."])
        #expect(await !isOpen(port))
        #expect(try await broker.ask("reverse", "--list").isEmpty)
        try await broker.restart()
        try await android.detach(pixel.serial)
        try await android.attach(pixel)
        try await eventually("the phone is back") { try await broker.devices().first?.isReady == true }
        #expect(await !isOpen(port))
        #expect(try await broker.ask("reverse", "--list").isEmpty)
        #expect(try await failure("--remove", words[0], of: broker).contains("no port \(port) of a phone"))
    }

    @Test func `the broker that stops leaves no port open on the phone`() async throws {
        let server = try EchoServer(in: scratch)
        let port = try FreePorts.take()[0]
        let android = try await ADBFixture([pixel], in: scratch)
        let broker = try await RunningBroker(in: scratch, android: android)
        try await eventually("the phone is listed") { try await broker.devices().count == 1 }
        _ = try await broker.ask("reverse", "\(port)", "\(server.port)")
        #expect(await isOpen(port))
        broker.daemon.terminate()
        #expect(try await broker.daemon.exitStatus() == .exited(0))
        #expect(await !isOpen(port))
    }

    @Test func `only the phone that was named gets the port, and the errors say what to do`() async throws {
        let galaxy = AndroidPhone("RZ8N90XYZ12", attachment: .tcp)
        let pixel = AndroidPhone(self.pixel.serial, address: PhoneOptions.loopback)
        let server = try EchoServer(in: scratch)
        let port = try FreePorts.take()[0]
        let phones = try await UsbmuxdFixture([Phones.one], in: scratch)
        let android = try await ADBFixture([pixel, galaxy], in: scratch)
        let own = try FreePorts.take()[0]
        let broker = try await RunningBroker(
            in: scratch,
            phones: phones,
            android: android,
            configuration: "[api]\nport = \(own)\n"
        )
        try await eventually("all are listed") { try await broker.devices().filter(\.isReady).count == 3 }
        let (phonePort, local) = ("tcp:\(port)", "tcp:\(server.port)")

        #expect(try await failure(phonePort, local, of: broker).contains("more than one phone is attached"))
        let galaxyUDID = "android-RZ8N90XYZ12"
        _ = try await broker.ask("reverse", phonePort, local, "--device", galaxyUDID)
        #expect(await isOpen(port))
        let other = try #require(SocketAddress(numeric: pixel.address, port: port))
        await #expect(throws: SocketError.self, "the other phone has the port") {
            _ = try await SocketStream.connect(to: other)
        }
        let json = try await broker.ask("reverse", "--list", "--json").joined()
        #expect(json.contains(galaxyUDID) && !json.contains(udid), "\(json)")

        let iPhone = try await failure(phonePort, local, "--device", Phones.one, of: broker)
        #expect(iPhone.contains("usbmuxd connects to ports of an iPhone only"), "\(iPhone)")
        let ownPort = try await failure("1", "\(own)", "--device", udid, of: broker)
        #expect(ownPort.contains("is the broker's own"), "\(ownPort)")
        for words in [
            ["tcp:0", local], ["tcp:1:192.0.2.7", local], [phonePort, "metro"], ["localabstract:x", local],
        ] {
            let message = try await failure(words[0], words[1], of: broker)
            #expect(message.contains("is not a port") && message.contains("tcp:8081 tcp:8081"), "\(message)")
        }
        #expect(try await failure(phonePort, of: broker).contains("specify two ports"))
        let taken = try await failure("\(server.port)", local, "--device", galaxyUDID, of: broker)
        #expect(taken.contains("already in use") && taken.contains("another port of the phone"), "\(taken)")
    }
}
