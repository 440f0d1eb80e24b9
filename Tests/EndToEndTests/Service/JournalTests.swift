import TestSupport
import Testing

/// What an operator reads in the log.
@Suite(.needs(.usbmuxd, .python)) struct JournalTests {
    private let phone = "00008030-001A2B3C4D5E6F70"

    @Test func `the log tells each thing once, with what it is about and what to do`() async throws {
        try await withScratchFolder { scratch in
            let app = try await SampleApp(address: PhoneOptions.loopback, port: 9_876, in: scratch)
            let rig = try await PhoneRig(in: scratch)
            let broker = try await RunningBroker(in: scratch, phones: rig)
            let log = broker.daemon
            try await log.waitForLine("usbmuxd is there")

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
            try await log.waitForLine("usbmuxd is lost")
            try await eventually("it was tried again") {
                try await broker.ask("status").joined().contains("usbmuxd is not running")
            }
            try await rig.start()
            try await eventually("usbmuxd is back") { self.count("usbmuxd is there", log) == 2 }
            log.terminate()
            _ = try await log.exitStatus()

            let told = [
                "patchbayd starts", "version=", "pid=\(log.processID)", "configuration=none",
                "state=\(scratch.file("state"))",
                "phone plugged in", "udid=\(phone)", "endpoint new", "id=shop-phone-5e6f70", "tunnel opened",
                "target=usb:\(phone):1", "connections through a tunnel fail", "reason=refused", "tunnel removed",
                "usbmuxd is lost", "Avahi is not there", "D-Bus, through which", "patchbayd stops",
            ]
            for words in told { #expect(log.story.contains(words), "\(words)") }
            let once = [
                "patchbayd starts", "phone plugged in", "phone unplugged", "endpoint new", "endpoint offline",
                "tunnel opened", "connections through a tunnel fail", "tunnel removed", "usbmuxd is lost",
                "Avahi is not there", "patchbayd stops",
            ]
            for words in once { #expect(count(words, log) == 1, "\(words)") }
            #expect(count("usbmuxd is not there", log) == 0)
            #expect(log.transcript.soFar.last?.text.contains("patchbayd stops") == true, "\(log.story)")
        }
    }

    @Test(.needs(.root, .namespaces, .avahi))
    func `what is advertised, and the loss of Avahi, are a line each`() async throws {
        try await withScratchFolder { scratch in
            let host = try await AvahiHost(in: scratch)
            let broker = try await RunningBroker(in: scratch, host: host)
            let log = broker.daemon
            try await log.waitForLine("Avahi is there")

            _ = try await broker.ask("advertise", "Journal", "_debug._tcp", "4711", "--detach")
            try await log.waitForLine("advertisement published")
            _ = try await broker.ask("advertisements", "rm", "a1")
            try await log.waitForLine("advertisement withdrawn")
            try await host.killAvahi()
            try await log.waitForLine("Avahi is lost")
            try await host.startAvahi()
            try await eventually("Avahi is back") { self.count("Avahi is there", log) == 2 }

            #expect(log.story.contains("id=a1 name=Journal port=4711 type=_debug._tcp"), "\(log.story)")
            #expect(log.story.contains("next=`systemctl status dbus avahi-daemon`"))
            #expect(count("Avahi is lost", log) == 1)
            #expect(count("Avahi is not there", log) == 0, "\(log.story)")
        }
    }

    private func count(_ words: String, _ log: Program) -> Int {
        log.story.split(separator: "\n").count { $0.contains(words) }
    }
}
