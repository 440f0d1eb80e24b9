import Foundation
import Glibc
import Model
import SystemIO
import TestSupport
import Testing

/// `patchbay usbmux`: one phone per socket.
@Suite(.needs(.usbmuxd), .timeLimit(.minutes(6)), .scratchFolder) struct UsbmuxCommandTests {
    private let scratch = ScratchFolder.current

    /// Runs a broker with two phones.
    private func startBroker() async throws -> (UsbmuxdFixture, RunningBroker) {
        let rig = try await UsbmuxdFixture([Phones.one, Phones.two], in: scratch)
        return (rig, try await RunningBroker(in: scratch, phones: rig))
    }

    @Test func `the socket shows one of two phones, also after it was unplugged and plugged in`() async throws {
        let (rig, broker) = try await startBroker()
        let socket = try await DeviceSocket(Phones.one, broker, in: scratch)
        try await socket.lists([Phones.one])
        #expect(try await socket.run("idevice_id", "-l") == [Phones.one])
        let listener = try MuxPeer(to: socket.path)
        #expect(try listener.ask("Listen")["Number"] as? Int == 0)
        let first = try listener.list()
        let properties = try #require(first["Properties"] as? NSDictionary)
        #expect(properties["SerialNumber"] as? String == Phones.one)
        #expect(properties["ProductID"] as? Int != 0 && properties["LocationID"] as? Int != 0)

        try await rig.detach(Phones.two)
        try await rig.detach(Phones.one)
        let farewell = try listener.list()
        #expect(try await socket.run("idevice_id", "-l") == [])
        try await rig.attach(Phones.two)
        try await rig.attach(Phones.one)
        let next = try listener.list()

        #expect(farewell["MessageType"] as? String == "Detached")
        #expect(farewell["DeviceID"] as? Int == first["DeviceID"] as? Int)
        #expect(next["MessageType"] as? String == "Attached")
        #expect((next["Properties"] as? NSDictionary)?["SerialNumber"] as? String == Phones.one)
        #expect(next["DeviceID"] as? Int != first["DeviceID"] as? Int)
    }

    @Test func `iproxy forwards through the socket without loss`() async throws {
        let (_, broker) = try await startBroker()
        let count = 8 << 20
        let app = try PatternServer(sending: count, in: scratch)
        let socket = try await DeviceSocket(Phones.two, broker, in: scratch)
        let port = try #require(try FreePorts.take().first)
        let iproxy = try await Program(
            "iproxy",
            ["-u", Phones.two, "\(port):\(app.port)"],
            in: scratch,
            environment: socket.environment
        )

        let bytes = try await withDeadline(.seconds(30), { "iproxy: \(iproxy.log)" }) {
            let stream: SocketStream = try await eventually("iproxy listens") {
                try? await SocketStream.connect(to: .ipv4(INADDR_LOOPBACK, port: port))
            }
            return try await stream.receive(count)
        }

        #expect(bytes.count == count && Pattern.matches(bytes, from: 0))
    }

    @Test(.needs(.python)) func `pymobiledevice3 lists the phone of the socket alone`() async throws {
        let (_, broker) = try await startBroker()
        let tool = try await PythonPeers.pymobiledevice3(in: scratch)
        let socket = try await DeviceSocket(Phones.two, broker, in: scratch)
        try await socket.lists([Phones.two])

        let listing = try await Program.run(
            tool,
            ["usbmux", "list", "--simple", "--usbmux", socket.path],
            in: scratch,
            environment: ["NO_COLOR": "1"]
        ).joined()

        #expect(listing.contains(Phones.two) && !listing.contains(Phones.one))
    }

    @Test(arguments: [false, true])
    func `the socket survives a restart of the broker, and shows the phone again`(isKilled: Bool) async throws {
        let (_, broker) = try await startBroker()
        let app = try EchoServer(in: scratch)
        let socket = try await DeviceSocket(Phones.one, broker, in: scratch)
        try await socket.lists([Phones.one])
        let listener = try MuxPeer(to: socket.path)
        #expect(try listener.ask("Listen")["Number"] as? Int == 0)
        let old = try listener.list()["DeviceID"] as? Int

        try await broker.restart(isKilled: isKilled)

        #expect(try listener.list()["MessageType"] as? String == "Detached")
        let next = try listener.list()
        #expect(next["MessageType"] as? String == "Attached" && next["DeviceID"] as? Int != old)
        let stream = try socket.stream(to: app.port)
        try stream.send([1, 2, 3])
        #expect(try stream.receive(3) == [1, 2, 3])
        try await socket.program.waitForLine("reconnected to the broker")
    }

    @Test func `a port where nothing listens is refused with the reason, and the connection can try again`()
        async throws
    {
        let (_, broker) = try await startBroker()
        let app = try EchoServer(in: scratch)
        let socket = try await DeviceSocket(Phones.one, broker, in: scratch)
        try await socket.lists([Phones.one])
        let peer = try MuxPeer(to: socket.path)
        let id = try #require(try peer.devices()[Phones.one])
        #expect(try peer.dial(id, 9) == 3)
        #expect(try peer.dial(id + 1, app.port) == 2)
        #expect(try peer.dial(id, app.port) == 0)
        try peer.send([1])
        #expect(try peer.receive(1) == [1])
        try await socket.program.waitForLine("nothing listens")
    }

    @Test func `a pair record comes from the usbmuxd of this machine, for this phone only`() async throws {
        let (rig, broker) = try await startBroker()
        let socket = try await DeviceSocket(Phones.one, broker, in: scratch)
        func read(_ udid: String) throws -> NSDictionary {
            let key = "<key>PairRecordID</key><string>\(udid)</string>"
            return try MuxPeer(to: socket.path).ask("ReadPairRecord", key)
        }

        let own = try MuxPeer(to: socket.path).ask("ReadBUID")["BUID"] as? String
        #expect(try own == MuxPeer(to: rig.socketPath).ask("ReadBUID")["BUID"] as? String)
        #expect(try read(Phones.two)["Number"] as? Int == 2)
        let usbmuxd = try MuxPeer(to: rig.socketPath).ask(
            "ReadPairRecord",
            "<key>PairRecordID</key><string>\(Phones.one)</string>"
        )
        #expect(try read(Phones.one) == usbmuxd)
        #expect(try MuxPeer(to: socket.path).ask("Reset")["Number"] as? Int == 1)
    }

    @Test func `the socket is private, replaces no other file, and is removed at the end with 130`() async throws {
        let (_, broker) = try await startBroker()
        let file = try scratch.write("text", to: "file")
        let refused = try await broker.start("usbmux", Phones.one, "--socket", file)
        #expect(try await refused.exitStatus() == .exited(1))
        #expect(refused.log.contains("exists and is not a socket"))
        let socket = try await DeviceSocket(Phones.one, broker, in: scratch)
        let second = try await broker.start("usbmux", Phones.one, "--socket", socket.path)
        #expect(try await second.exitStatus() == .exited(1))
        #expect(second.log.contains("is in use by process"), "\(second.log)")
        let mode = try FileManager.default.attributesOfItem(atPath: socket.path)[.posixPermissions] as? Int
        #expect(mode == 0o600)

        socket.program.kill()
        _ = try await socket.program.exitStatus()
        #expect(FileManager.default.fileExists(atPath: socket.path))
        let next = try await DeviceSocket(Phones.one, broker, in: scratch)
        next.program.send(SIGINT)

        #expect(try await next.program.exitStatus() == .exited(130))
        #expect(!FileManager.default.fileExists(atPath: socket.path))
        #expect(try String(contentsOfFile: file, encoding: .utf8) == "text")
    }

    @Test func `a phone that is not attached appears when it is plugged in`() async throws {
        let rig = try await UsbmuxdFixture([Phones.two], in: scratch)
        let broker = try await RunningBroker(in: scratch, phones: rig)
        let socket = try await DeviceSocket(Phones.one, broker, in: scratch)
        try await socket.program.waitForLine("is not attached; the socket shows it when it is plugged in")
        #expect(try await socket.run("idevice_id", "-l") == [])

        try await rig.attach(Phones.one)

        try await socket.lists([Phones.one])
    }

    @Test(.needs(.root, .python)) func `a lease of another client refuses new connections, and the command names it`()
        async throws
    {
        let app = try await SampleApp(in: scratch)
        let rig = try await UsbmuxdFixture([Phones.one], in: scratch)
        let broker = try await RunningBroker(
            in: scratch,
            phones: rig,
            configuration: "[devices]\nprobe_ports = [\(app.port)]\n"
        )
        let endpoint = try await eventually("the app is listed") { try await broker.endpoints().first }
        let socket = try await DeviceSocket(Phones.one, broker, in: scratch)
        try await socket.lists([Phones.one])
        _ = try socket.stream(to: app.port)
        let grant = scratch.file("grant.sock")
        let scopes = ["registry.read", "endpoint.call"].flatMap { ["--scope", $0] }
        let pair = try await broker.start(["pair", "--socket", grant] + scopes)
        #expect(try await pair.exitStatus() == .exited(0), "\(pair.log)")
        try await Program.run(
            Executable.built("patchbay"),
            ["lease", endpoint.id.text],
            in: scratch,
            environment: ["PATCHBAY_SOCKET": grant, "HOME": scratch.path]
        )

        let peer = try MuxPeer(to: socket.path)
        let id = try #require(try peer.devices()[Phones.one])
        #expect(try peer.dial(id, app.port) == 3)

        try await socket.program.waitForLine("is leased to")
        // A lease of another client may end later, so it does not prevent the start.
        let second = try await broker.start(["usbmux", Phones.one, "--socket", scratch.file("second")])
        try await second.waitForLine(" -> ")
    }

    @Test(.needs(.root)) func `a grant for certain endpoints gets no socket`() async throws {
        let (_, broker) = try await startBroker()
        _ = try await broker.ask("add", "lab", "127.0.0.1:9")
        let grant = scratch.file("grant.sock")
        let scopes = ["registry.read", "tunnel.open"].flatMap { ["--scope", $0] }
        let pair = try await broker.start(["pair", "--socket", grant, "--endpoint", "lab"] + scopes)
        #expect(try await pair.exitStatus() == .exited(0), "\(pair.log)")
        let path = scratch.file("phone")

        let usbmux = try await Program(
            Executable.built("patchbay"),
            ["usbmux", Phones.one, "--socket", path],
            in: scratch,
            environment: ["PATCHBAY_SOCKET": grant, "HOME": scratch.path]
        )

        #expect(try await usbmux.exitStatus() == .exited(77), "\(usbmux.log)")
        #expect(usbmux.log.contains("does not allow the ports of devices, only certain endpoints"))
        #expect(!FileManager.default.fileExists(atPath: path))
    }
}
