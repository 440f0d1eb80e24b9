import FoundationEssentials
import Glibc
import SystemIO
import TestSupport
import Testing

/// `patchbay forward` and `patchbay stdio` through a broker on another machine, over TLS with a client key.
@Suite(.needs(.usbmuxd, .python), .scratchFolder) struct StreamTests {
    private let scratch = ScratchFolder.current
    private static let phone = "00008030-001A2B3C4D5E6F70"

    /// A broker with its remote listener on and a phone, and a client that has joined as `team`.
    private struct Bed {
        let broker: RunningBroker
        let rig: UsbmuxdFixture

        /// Starts `patchbay forward` and returns it with its local port.
        func forward(_ arguments: String...) async throws -> (program: Program, port: UInt16) {
            let program = try await broker.start(["forward", "--broker", "team"] + arguments)
            let line = try await program.waitForLine(" -> ")
            let port = line.split(separator: " ").first?.split(separator: ":").last.flatMap { UInt16($0) }
            return (program, try #require(port, "\(line)"))
        }

        /// Opens a connection whose first byte was echoed.
        func echoed(by port: UInt16) async throws -> SocketStream {
            let client = try await SocketStream.connect(to: .ipv4(INADDR_LOOPBACK, port: port))
            try await client.send([1])
            #expect(try await client.receive(1) == [1])
            return client
        }

        /// Adds a static endpoint and returns its ID.
        func add(_ name: String, port: UInt16) async throws -> String {
            _ = try await broker.ask("add", name, "127.0.0.1:\(port)", "--kind", "mcp")
            return name.lowercased()
        }
    }

    private func startBed() async throws -> Bed {
        let rig = try await UsbmuxdFixture([Self.phone], in: scratch)
        let broker = try await RunningBroker(in: scratch, phones: rig)
        _ = try await broker.ask("remote", "on", "127.0.0.1:\(try FreePorts.take()[0])")
        let pair = try await broker.start(
            ["pair", "--remote", "--host", "127.0.0.1"]
                + ["registry.read", "endpoint.call", "tunnel.open"].flatMap { ["--scope", $0] }
        )
        let pairing = try await pair.waitForLine("PATCHBAY:1:")
        let join = try await broker.start("join", "-", "--as", "team", input: .pipe)
        try join.write(String(pairing.drop { $0 == " " }) + "\n")
        join.closeInput()
        #expect(try await join.exitStatus() == .exited(0), "\(join.log)")
        return Bed(broker: broker, rig: rig)
    }

    private static let size = 64 << 20

    @Test func `64 MiB arrive intact in each direction at the same time, and both ends of input arrive`() async throws {
        let bed = try await startBed()
        let app = try PatternServer(sending: Self.size, in: scratch)
        let (_, port) = try await bed.forward("-e", try await bed.add("App", port: app.port))
        let received = await LoopbackClient.talk(to: port, within: .seconds(100)) { peer in
            [peer.exchange(sending: Self.size, expecting: Self.size, finishes: true).received, peer.receive()]
        }
        #expect(received == [PatternPeer.Received(count: Self.size), PatternPeer.Received(end: .closed)])
        // The broker's probes connect too, and send nothing.
        for await upload in app.uploads.elements() where upload.count > 0 {
            #expect(upload == PatternServer.Upload(count: Self.size))
            break
        }
    }

    @Test func `a reader that stalls misses no byte, and no program buffers what the reader has not read`() async throws
    {
        let bed = try await startBed()
        let app = try PatternServer(sending: Self.size * 3, in: scratch)
        let (forward, port) = try await bed.forward("-e", try await bed.add("App", port: app.port))
        let programs = [forward, bed.broker.daemon]
        let before = try Self.memory("VmRSS", of: programs)
        let stall = PatternPeer.Stall(after: 1 << 20, for: .seconds(2))
        let received = await LoopbackClient.talk(to: port, within: .seconds(100)) { peer in
            let first = peer.receive(Self.size, stall: stall)
            // The app has more to send than all buffers of the kernel hold, which are read at the end.
            let growth = (try? Self.memory("VmHWM", of: programs)).map { $0 - before }
            return (first: first, growth: growth, rest: peer.receive(from: Self.size))
        }
        #expect(received?.first == PatternPeer.Received(count: Self.size))
        #expect(received?.rest == PatternPeer.Received(count: Self.size * 2, end: .closed))
        let growth = try #require(received?.growth)
        #expect(growth < 32 << 10, "\(growth) KiB")
    }

    /// Returns a figure of /proc/PID/status for several programs together, in KiB.
    private static func memory(_ name: String, of programs: [Program]) throws -> Int {
        try programs.reduce(0) { sum, program in
            let status = try String(contentsOfFile: "/proc/\(program.processID)/status", encoding: .utf8)
            let line = try #require(status.split(separator: "\n").first { $0.hasPrefix(name) })
            return sum + (Int(line.filter(\.isNumber)) ?? 0)
        }
    }

    @Test func `50 streams at once carry their own bytes`() async throws {
        let bed = try await startBed()
        let app = try EchoServer(in: scratch)
        let (_, port) = try await bed.forward("0:\(app.port)", "-d", Self.phone)
        let echoed = await withTaskGroup(of: Bool.self) { group in
            for _ in 0..<50 {
                group.addTask { await LoopbackClient.echoes(200_000, from: port, within: .seconds(60)) }
            }
            return await group.reduce(0) { $0 + ($1 ? 1 : 0) }
        }
        #expect(echoed == 50)
    }

    @Test func `a phone that is unplugged resets the client, and the port works again later`() async throws {
        let bed = try await startBed()
        let app = try EchoServer(in: scratch)
        let (forward, port) = try await bed.forward("0:\(app.port)", "-d", Self.phone)
        let client = try await bed.echoed(by: port)
        #expect(try await bed.broker.ask("status", "--json").joined().contains(#""streams":1"#))
        #expect(try await bed.broker.ask("tunnels", "--quiet").isEmpty)

        try await bed.rig.detach(Self.phone)

        await #expect(throws: SocketStream.Failure(code: ECONNRESET)) { try await client.receiveSome() }
        #expect(await SocketStream.isReset(by: .ipv4(INADDR_LOOPBACK, port: port)))
        try await forward.waitForLine("t1: ")
        try await bed.rig.attach(Self.phone)
        _ = try await bed.echoed(by: port)
    }

    @Test func `a revocation resets the streams of the grant before it is answered`() async throws {
        let bed = try await startBed()
        let app = try EchoServer(in: scratch)
        let (forward, port) = try await bed.forward("-e", try await bed.add("App", port: app.port))
        let client = try await bed.echoed(by: port)
        let grant = try #require(try await bed.broker.ask("grants", "--quiet").first)

        _ = try await bed.broker.ask("revoke", grant)

        #expect(!(try await bed.broker.ask("status", "--json").joined().contains(#""streams""#)))
        await #expect(throws: SocketStream.Failure(code: ECONNRESET)) { try await client.receiveSome() }
        #expect(try await forward.exitStatus() == .exited(77), "\(forward.log)")
    }

    @Test func `turning the remote listener off resets its open streams`() async throws {
        let bed = try await startBed()
        let app = try EchoServer(in: scratch)
        let (_, port) = try await bed.forward("-e", try await bed.add("App", port: app.port))
        let client = try await bed.echoed(by: port)

        _ = try await bed.broker.ask("remote", "off")

        await #expect(throws: SocketStream.Failure(code: ECONNRESET)) { try await client.receiveSome() }
        #expect(!(try await bed.broker.ask("status", "--json").joined().contains(#""streams""#)))
    }

    @Test func `a revocation ends a forward without a connection, also after a restart of the broker`() async throws {
        let bed = try await startBed()
        let (forward, _) = try await bed.forward("0:22", "-d", Self.phone)
        try await bed.broker.restart()
        let grant = try #require(try await bed.broker.ask("grants", "--quiet").first)

        _ = try await bed.broker.ask("revoke", grant)

        #expect(try await forward.exitStatus() == .exited(77), "\(forward.log)")
        #expect(forward.log.contains("the grant was revoked or has expired"), "\(forward.log)")
    }

    @Test func `a restart of the broker ends open streams only`() async throws {
        let bed = try await startBed()
        let app = try EchoServer(in: scratch)
        let (_, port) = try await bed.forward("0:\(app.port)", "-d", Self.phone)
        let client = try await bed.echoed(by: port)

        try await bed.broker.restart()

        await #expect(throws: SocketStream.Failure(code: ECONNRESET)) { try await client.receiveSome() }
        try await eventually("the port works again") { await LoopbackClient.echoes(from: port, within: .seconds(5)) }
    }

    @Test(.needs(.root)) func `web pages and other users are refused at the local port`() async throws {
        let bed = try await startBed()
        let app = try await SampleApp(in: scratch)
        let (_, port) = try await bed.forward("0:\(app.port)", "-d", Self.phone)
        func curl(_ prefix: [String], _ more: String...) async throws -> String {
            let words = prefix + ["curl", "-sS", "--max-time", "5", "-w", " status %{http_code}"] + more
            let program = try await Program(
                words[0],
                Array(words.dropFirst()) + ["http://127.0.0.1:\(port)/health"],
                in: scratch
            )
            return try await program.lines().map(\.text).joined(separator: "\n")
        }

        #expect(try await curl([]).contains("status 200"))
        #expect(try await curl([], "-H", "Origin: http://evil.example").contains("status 403"))
        #expect(try await curl(["setpriv", "--reuid=65534", "--clear-groups"]).contains("status 000"))
    }

    @Test func `several ports are opened together or not at all, and --detach is refused`() async throws {
        let bed = try await startBed()
        let taken = try Listener(on: .ipv4(INADDR_LOOPBACK, port: 0))
        let (used, free) = (try #require(taken.address.port), try FreePorts.take()[0])
        let both = try await bed.broker.start(
            "forward",
            "--broker",
            "team",
            "\(free):22",
            "\(used):23",
            "-d",
            Self.phone
        )
        #expect(try await both.exitStatus() == .exited(1))
        #expect(both.log.contains("is in use by another program"), "\(both.log)")
        await #expect(throws: (any Error).self) {
            try await SocketStream.connect(to: .ipv4(INADDR_LOOPBACK, port: free))
        }

        let detached = try await bed.broker.start("forward", "--broker", "team", "22", "-d", Self.phone, "--detach")
        #expect(try await detached.exitStatus() == .exited(64))
        #expect(detached.log.contains("a broker on another machine would listen there"), "\(detached.log)")
    }

    @Test func `stdio carries the input and the output, and tells why a stream failed`() async throws {
        let bed = try await startBed()
        let app = try EchoServer(in: scratch)
        let id = try await bed.add("App", port: app.port)
        let stdio = try await bed.broker.start("stdio", "--broker", "team", id, input: .pipe)
        try stdio.write("hello\n")
        try await stdio.waitForLine("hello")
        stdio.closeInput()
        #expect(try await stdio.exitStatus() == .exited(0), "\(stdio.log)")

        app.stop()
        let failed = try await bed.broker.start("stdio", "--broker", "team", id)
        #expect(try await failed.exitStatus() == .exited(75))
        #expect(failed.log.contains("nothing listens on 127.0.0.1:\(app.port)"), "\(failed.log)")
    }

    @Test(.needs(.root, .namespaces, .ssh)) func `forward through ssh opens its port on this machine`() async throws {
        let machine = try await SSHMachine(in: scratch)
        try await machine.startBroker()
        let app = try await machine.startApp()
        _ = try await machine.ask("ssh://box", "add", "Shop", "127.0.0.1:\(app)", "--kind", "appreveal")
        let forward = try await machine.start("ssh://box", "forward", "-e", "shop")
        let address = try #require(try await forward.waitForLine(" -> ").split(separator: " ").first)
        #expect(try await machine.ask("ssh://box", "tunnels", "--quiet").isEmpty)

        let health = try await machine.run("curl", "-sS", "--max-time", "5", "http://\(address)/health")

        #expect(health.joined().contains("\"status\""))
    }
}
