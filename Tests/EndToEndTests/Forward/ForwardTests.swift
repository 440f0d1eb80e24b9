import Model
import TestSupport
import Testing

@Suite(.needs(.usbmuxd, .python), .scratchFolder) struct ForwardTests {
    private let scratch = ScratchFolder.current
    private let phone = "00008030-001A2B3C4D5E6F70"

    @Test func `a tunnel reaches a phone's port before and after the phone was unplugged`() async throws {
        let app = try await SampleApp(in: scratch)
        let rig = try await UsbmuxdFixture([phone], in: scratch)
        let broker = try await RunningBroker(in: scratch, phones: rig)

        let port = try await broker.forward("tcp:0:\(app.port)", "--device", phone)
        #expect(try await broker.fetch("/health", port: port).contains("\"status\""))

        try await rig.detach(phone)
        await #expect(throws: TestSupportError.self) { try await broker.fetch("/health", port: port) }
        #expect(try await broker.ask("tunnels").joined().contains("waiting"))

        try await rig.attach(phone)
        try await eventually("the tunnel works again") {
            (try? await broker.fetch("/health", port: port))?.contains("\"status\"") == true
        }
    }

    @Test func `a tunnel to a phone that is not plugged in waits for it`() async throws {
        let app = try await SampleApp(in: scratch)
        let rig = try await UsbmuxdFixture(in: scratch)
        let broker = try await RunningBroker(in: scratch, phones: rig)

        let port = try await broker.forward("tcp:0:\(app.port)", "--device", phone)
        #expect(try await broker.ask("tunnels").joined().contains("  waiting  "))

        try await rig.attach(phone)
        try await eventually("it is there") { try await broker.ask("tunnels").joined().contains("  active  ") }
        #expect(try await broker.fetch("/health", port: port).contains("\"status\""))
        try await rig.detach(phone)
        try await eventually("it waits again") { try await broker.ask("tunnels").joined().contains("  waiting  ") }
    }

    @Test func `a port on which nothing listens is told at once, until a connection works`() async throws {
        let rig = try await UsbmuxdFixture([phone], in: scratch)
        let android = try await ADBFixture([AndroidPhone("R58M12ABCDE")], in: scratch)
        let broker = try await RunningBroker(in: scratch, phones: rig, android: android)
        try await eventually("both are listed") { try await broker.devices().filter(\.isReady).count == 2 }
        for device in [phone, "android-R58M12ABCDE", nil] {
            let port = try FreePorts.take()[0]
            if device == nil { _ = try await broker.ask("add", "Lab", "127.0.0.1:\(port)") }
            let began = ContinuousClock.now
            let target = device.map { ["tcp:0:\(port)", "--device", $0] } ?? ["tcp:0", "--endpoint", "lab"]
            let opened = try await broker.ask(["forward", "--detach"] + target).joined()
            #expect(
                began.duration(to: .now) < .seconds(4),
                "the check has a second, and a busy machine starts programs slowly"
            )
            let local = try #require(
                opened.split(separator: " ").first?.split(separator: ":").last.flatMap { UInt16($0) }
            )
            if device == phone {
                // Only a connection tells, which the server of a debugger would take for its only client.
                #expect(!opened.contains("nothing listens"), "\(opened)")
                #expect(await !LoopbackClient.echoes(from: local, within: .seconds(5)))
            } else {
                #expect(opened.contains(" waiting: ") && opened.contains("nothing listens on "), "\(opened)")
            }
            try await eventually("it waits for a listener") {
                let tunnels = try await broker.ask("tunnels").joined()
                return tunnels.contains("  waiting  ") && tunnels.contains("nothing listens on ")
            }
            if device == nil {
                let shown = try await broker.ask("show", "lab").joined()
                #expect(
                    shown.contains(") waiting: ") && shown.contains("nothing listens on 127.0.0.1:\(port)"),
                    "\(shown)"
                )
            }

            let app = try EchoServer(port: port, in: scratch)
            try await eventually("it works") { await LoopbackClient.echoes(from: local, within: .seconds(5)) }
            try await eventually("it is active") { try await broker.ask("tunnels").joined().contains("  active  ") }
            app.stop()
            #expect(await !LoopbackClient.echoes(from: local, within: .seconds(5)))
            try await eventually("it waits") {
                try await broker.ask("tunnels").joined().contains("nothing listens on ")
            }
            _ = try await broker.ask("tunnels", "rm", "--all")
        }
    }

    @Test func `the words of adb open, list and remove a tunnel`() async throws {
        let app = try await SampleApp(in: scratch)
        let rig = try await UsbmuxdFixture([phone], in: scratch)
        let broker = try await RunningBroker(in: scratch, phones: rig)
        let port = try FreePorts.take()[0]

        #expect(try await broker.forward("tcp:\(port)", "tcp:\(app.port)") == port)
        #expect(try await broker.fetch("/health", port: port).contains("\"status\""))
        #expect(try await broker.ask("forward", "--list") == ["\(phone) tcp:\(port) tcp:\(app.port)"])

        _ = try await broker.ask("forward", "--remove", "tcp:\(port)")
        #expect(try await broker.ask("forward", "--list") == [])
        await #expect(throws: TestSupportError.self) { try await broker.fetch("/health", port: port) }
    }

    @Test func `a tunnel without its phone resets clients and never refuses them`() async throws {
        let app = try await SampleApp(in: scratch)
        let rig = try await UsbmuxdFixture([phone], in: scratch)
        let broker = try await RunningBroker(in: scratch, phones: rig)
        let port = try await broker.forward("tcp:0:\(app.port)", "--device", phone)

        let clients = try await Program("python3", ["-c", Self.clients, "\(port)"], in: scratch)
        while !clients.transcript.soFar.contains(where: { $0.text.contains("done") }) {
            try await rig.detach(phone)
            try await Task.sleep(for: .milliseconds(300))
            try await rig.attach(phone)
            try await Task.sleep(for: .milliseconds(300))
        }

        let log = clients.log
        #expect(!log.contains("ECONNREFUSED"), "\(log)")
        #expect(log.contains("served"), "\(log)")
        #expect(log.contains("reset"), "\(log)")
    }

    /// A script that runs 500 consecutive clients and prints each result.
    private static let clients = """
        import collections, errno, socket, sys, time
        ends = collections.Counter()
        for number in range(500):
            client = socket.socket(socket.AF_INET6 if number % 2 else socket.AF_INET)
            client.settimeout(5)
            try:
                client.connect(("::1" if number % 2 else "127.0.0.1", int(sys.argv[1])))
            except OSError as error:
                ends["connect: " + errno.errorcode.get(error.errno, str(error))] += 1
                continue
            finally:
                time.sleep(0.005)
            try:
                client.sendall(b"GET /health HTTP/1.1\\r\\nHost: localhost\\r\\n\\r\\n")
                ends["served" if client.recv(100) else "closed"] += 1
            except OSError as error:
                ends["reset" if error.errno in (errno.ECONNRESET, errno.EPIPE) else str(error)] += 1
            client.close()
        print("done", dict(ends), flush=True)
        """

    @Test func `a tunnel survives restarts of the broker and of usbmuxd on the same port`() async throws {
        let app = try await SampleApp(in: scratch)
        let rig = try await UsbmuxdFixture([phone], in: scratch)
        let broker = try await RunningBroker(in: scratch, phones: rig)
        let port = try await broker.forward("tcp:0:\(app.port)", "--device", phone)

        try await broker.restart()
        try await rig.restart()

        try await eventually("the tunnel works again") {
            (try? await broker.fetch("/health", port: port))?.contains("\"status\"") == true
        }
    }

    @Test func `several tunnels are opened even if the output is closed, or none if one cannot listen`()
        async throws
    {
        let broker = try await RunningBroker(in: scratch)
        let ports = try FreePorts.take(6)
        let pairs = ports.map { "\($0):22" }
        let words = "\"$0\" forward \(pairs.joined(separator: " ")) --device \(phone) --detach | head -1"

        let first = try await Program.run(
            "sh",
            ["-c", words, try Executable.built("patchbay")],
            in: scratch,
            environment: ["PATCHBAY_SOCKET": broker.socket]
        )
        #expect(first.count == 1)
        #expect(try await broker.ask("tunnels", "--json").joined().ranges(of: "\"id\"").count == 6)

        _ = try await broker.ask("tunnels", "rm", "--all")
        let taken = try LoopbackServer(port: ports[3], in: scratch) { _ in }
        await #expect(throws: TestSupportError.self) {
            try await Program.run(
                Executable.built("patchbay"),
                ["forward", "--detach", "--device", phone] + pairs,
                in: scratch,
                environment: ["PATCHBAY_SOCKET": broker.socket]
            )
        }
        #expect(try await broker.ask("tunnels").joined().contains("No tunnel"))
        taken.stop()
    }

    @Test func `a removed tunnel stops listening at once`() async throws {
        let app = try await SampleApp(in: scratch)
        let rig = try await UsbmuxdFixture([phone], in: scratch)
        let broker = try await RunningBroker(in: scratch, phones: rig)
        let port = try await broker.forward("tcp:0:\(app.port)", "--device", phone)

        _ = try await broker.ask("tunnels", "rm", "--all")

        await #expect(throws: TestSupportError.self) { try await broker.fetch("/health", port: port) }
    }

    @Test func `the iproxy command line works, and its tunnel ends with the command`() async throws {
        let app = try await SampleApp(in: scratch)
        let rig = try await UsbmuxdFixture([phone], in: scratch)
        let broker = try await RunningBroker(in: scratch, phones: rig)
        let local = try await broker.forward("tcp:0:\(app.port)", "--device", phone)
        _ = try await broker.ask("tunnels", "rm", "--all")

        let iproxy = try await broker.start("iproxy", "\(local):\(app.port)", "-u", phone)
        try await iproxy.waitForLine("waiting for connection")
        #expect(try await broker.fetch("/health", port: local).contains("\"status\""))
        iproxy.kill()
        _ = try await iproxy.exitStatus()

        try await eventually("its tunnel is gone") { try await broker.ask("tunnels").joined().contains("No tunnel") }
        // The broker survives a killed client.
        #expect(try await broker.ask("status").joined().contains("patchbayd"))
    }

    @Test func `stdio writes the whole reply after the end of its input`() async throws {
        let app = try await SampleApp(in: scratch)
        let rig = try await UsbmuxdFixture([phone], in: scratch)
        let broker = try await RunningBroker(in: scratch, phones: rig)

        let stdio = try await broker.start("stdio", "\(phone):\(app.port)", input: .pipe)
        try stdio.write("GET /health HTTP/1.0\r\n\r\n")
        stdio.closeInput()

        try await stdio.waitForLine("\"status\"")
        #expect(try await stdio.exitStatus() == .exited(0))
    }
}
