import Glibc
import Model
import SystemIO
import TestSupport
import Testing

/// The phones of one host at the broker of another host.
@Suite(.needs(.etcd, .usbmuxd), .timeLimit(.minutes(5)), .scratchFolder) struct TeamPhoneTests {
    private let scratch = ScratchFolder.current

    private static func options(_ address: String) -> PhoneOptions {
        var options = PhoneOptions()
        options.address = address
        return options
    }

    /// Returns the hosts of the routes of a phone that is listed once; nil otherwise.
    private static func hosts(of phone: String, at broker: RunningBroker) async throws -> [String]? {
        let entries = try await broker.devices().filter { $0.udid.text == phone }
        return entries.count == 1 ? entries[0].routes?.map(\.host.name.text) : nil
    }

    @Test(.needs(.python))
    func `unmodified tools at one host use a phone that is attached to another host only`() async throws {
        let rig = try await UsbmuxdFixture([Phones.one], in: scratch)
        let count = 8 << 20
        let app = try PatternServer(sending: count, in: scratch)
        let team = try await RunningTeam(in: scratch, phones: rig)
        try await team.waitUntil { try await Self.hosts(of: Phones.one, at: team.lab1) == ["lab2"] }

        let socket = try await DeviceSocket(Phones.one, team.lab1, in: scratch)
        try await socket.lists([Phones.one])
        #expect(try await socket.run("idevice_id", "-l") == [Phones.one])
        let tool = try await PythonPeers.pymobiledevice3(in: scratch)
        let listing = try await socket.run(tool, "usbmux", "list", "--simple", "--usbmux", socket.path)
        #expect(listing.joined().contains(Phones.one))
        let port = try #require(try FreePorts.take().first)
        let iproxy = try await Program(
            "iproxy",
            ["-u", Phones.one, "\(port):\(app.port)"],
            in: scratch,
            environment: socket.environment
        )
        let bytes = try await withDeadline(.seconds(60), { "iproxy: \(iproxy.log)" }) {
            let stream: SocketStream = try await eventually("iproxy listens") {
                try? await SocketStream.connect(to: .ipv4(INADDR_LOOPBACK, port: port))
            }
            return try await stream.receive(count)
        }
        #expect(bytes.count == count && Pattern.matches(bytes, from: 0))

        try await rig.detach(Phones.one)

        try await socket.lists([])
        try await team.waitUntil { try await team.lab1.devices().isEmpty }
    }

    @Test func `a note of a phone is shown at the other host, and only its own host changes it`() async throws {
        let rig = try await UsbmuxdFixture([Phones.one], in: scratch)
        let team = try await RunningTeam(in: scratch, phones: rig)
        try await team.waitUntil { try await Self.hosts(of: Phones.one, at: team.lab1) == ["lab2"] }
        _ = try await team.lab2.ask("devices", "note", Phones.one, "--label", "drawer 3")

        try await team.waitUntil { try await team.lab1.devices().first?.label?.text == "drawer 3" }
        let refusal = await #expect(throws: (any Error).self) {
            try await team.lab1.ask("devices", "note", Phones.one, "--label", "drawer 4")
        }
        #expect("\(refusal as Any)".contains("attached to the host lab2"))
    }

    @Test func `a phone at two hosts is one device with two routes, and each host uses its own cable first`()
        async throws
    {
        // The app runs on the cable of lab2 only, so a connection shows which cable it takes.
        let rigs = [try await UsbmuxdFixture(in: scratch), try await UsbmuxdFixture(in: scratch)]
        try await rigs[0].attach(Phones.one, .ofItsOwn)
        try await rigs[1].attach(Phones.one, Self.options("127.0.0.1"))
        let app = try EchoServer(in: scratch)
        let team = try await RunningTeam(in: scratch, ownPhones: rigs[0], phones: rigs[1])
        for (broker, hosts) in [(team.lab1, ["lab1", "lab2"]), (team.lab2, ["lab2", "lab1"])] {
            try await team.waitUntil { try await Self.hosts(of: Phones.one, at: broker) == hosts }
        }
        let socket = try await DeviceSocket(Phones.one, team.lab1, in: scratch)
        try await socket.lists([Phones.one])
        #expect(try await socket.run("idevice_id", "-l") == [Phones.one])
        let peer = try MuxPeer(to: socket.path)
        let number = try #require(try peer.devices()[Phones.one])
        #expect(try peer.dial(number, app.port) == 3)

        try await rigs[0].detach(Phones.one)

        try await team.waitUntil { try await Self.hosts(of: Phones.one, at: team.lab1) == ["lab2"] }
        let stream: MuxPeer = try await eventually("the phone is reached through lab2") {
            try? socket.stream(to: app.port)
        }
        try stream.send([1, 2, 3])
        #expect(try stream.receive(3) == [1, 2, 3])
    }
}
