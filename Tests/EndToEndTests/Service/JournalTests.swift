import TestSupport
import Testing

/// The log as an operator reads it.
@Suite(.needs(.usbmuxd, .python), .scratchFolder) struct JournalTests {
    private let scratch = ScratchFolder.current
    private let phone = "00008030-001A2B3C4D5E6F70"

    @Test func `the log has one line per event, with its object and its remedy`() async throws {
        let app = try await SampleApp(address: PhoneOptions.loopback, port: 9_876, in: scratch)
        let rig = try await UsbmuxdFixture(in: scratch)
        let broker = try await RunningBroker(in: scratch, phones: rig)
        let log = broker.daemon
        try await log.waitForLine("connected to usbmuxd")

        try await rig.attach(phone, .ofItsOwn)
        try await log.waitForLine("endpoint new")
        let port = try await broker.forward("tcp:0:1", "--device", phone)
        for _ in 1...3 { _ = try? await broker.fetch("/", port: port) }
        _ = try await broker.ask("tunnels", "rm", "--all")
        try await app.quit()
        try await log.waitForLine("endpoint offline")
        try await rig.detach(phone)
        try await log.waitForLine("phone unplugged")
        try await rig.kill()
        try await log.waitForLine("lost the connection to usbmuxd")
        try await eventually("it was tried again") {
            try await broker.ask("status").joined().contains("usbmuxd is not running")
        }
        try await rig.start()
        try await eventually("usbmuxd is back") { self.count("connected to usbmuxd", log) == 2 }
        log.terminate()
        _ = try await log.exitStatus()

        let told = [
            "patchbayd starts", "version=", "pid=\(log.processID)", "configuration=\"none",
            "state=\(scratch.file("state"))",
            "phone plugged in", "udid=\(phone)", "endpoint new", "id=shop-phone-5e6f70", "tunnel opened",
            "target=usb:\(phone):1", "connections through a tunnel fail", "reason=refused", "tunnel removed",
            "lost the connection to usbmuxd", "Avahi is not available", "D-Bus, which Avahi needs",
            "patchbayd stops",
        ]
        for words in told { #expect(log.log.contains(words), "\(words)") }
        let once = [
            "patchbayd starts", "phone plugged in", "phone unplugged", "endpoint new", "endpoint offline",
            "tunnel opened", "connections through a tunnel fail", "tunnel removed",
            "lost the connection to usbmuxd",
            "Avahi is not available", "patchbayd stops",
        ]
        for words in once { #expect(count(words, log) == 1, "\(words)") }
        #expect(count("usbmuxd is not available", log) == 0)
        #expect(log.transcript.soFar.last?.text.contains("patchbayd stops") == true, "\(log.log)")
    }

    @Test(.needs(.root, .namespaces, .avahi))
    func `an advertisement and the loss of Avahi are one log line each`() async throws {
        let host = try await AvahiHost(in: scratch)
        let broker = try await RunningBroker(in: scratch, host: host)
        let log = broker.daemon
        try await log.waitForLine("connected to Avahi")

        _ = try await broker.ask("advertise", "Journal", "_debug._tcp", "4711", "--detach")
        try await log.waitForLine("advertisement published")
        _ = try await broker.ask("advertisements", "rm", "a1")
        try await log.waitForLine("advertisement withdrawn")
        try await host.killAvahi()
        try await log.waitForLine("lost the connection to Avahi")
        try await host.startAvahi()
        try await eventually("Avahi is back") { self.count("connected to Avahi", log) == 2 }

        #expect(log.log.contains("id=a1 name=Journal port=4711 type=_debug._tcp"), "\(log.log)")
        #expect(log.log.contains("hint=\"`systemctl status dbus avahi-daemon`\""))
        #expect(count("lost the connection to Avahi", log) == 1)
        #expect(count("Avahi is not available", log) == 0, "\(log.log)")
    }

    private func count(_ words: String, _ log: Program) -> Int {
        log.log.split(separator: "\n").count { $0.contains(words) }
    }
}
