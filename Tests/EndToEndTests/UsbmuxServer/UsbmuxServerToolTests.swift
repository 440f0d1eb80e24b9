import Foundation
import Glibc
import SystemIO
import TestSupport
import Testing

/// The unmodified clients of usbmuxd, connected to Patchbay's server.
@Suite(.needs(.usbmuxd), .timeLimit(.minutes(6)), .scratchFolder) struct UsbmuxServerToolTests {
    private let scratch = ScratchFolder.current

    private static func list(_ facade: RunningUsbmuxServer, _ scratch: ScratchFolder) async throws -> Set<String> {
        Set(try await Program.run("idevice_id", ["-l"], in: scratch, environment: facade.environment))
    }

    /// Downloads all bytes of a server through a tool that may need a moment to listen.
    private static func download(_ count: Int, _ port: UInt16) async throws -> [UInt8] {
        let address = SocketAddress.ipv4(0x7F00_0001, port: port)
        let stream: SocketStream = try await eventually("the tool listens") {
            try? await SocketStream.connect(to: address)
        }
        return try await stream.receive(count)
    }

    @Test func `idevice_id lists exactly the phones, also after they were unplugged and plugged in`() async throws {
        let rig = try await UsbmuxdFixture([Phones.one, Phones.two], in: scratch)
        let facade = try await RunningUsbmuxServer(in: scratch, phones: rig)
        try await facade.lists([Phones.one, Phones.two])
        #expect(try await Self.list(facade, scratch) == [Phones.one, Phones.two])

        try await rig.detach(Phones.one)
        try await facade.lists([Phones.two])
        #expect(try await Self.list(facade, scratch) == [Phones.two])

        try await rig.stop()
        try await facade.lists([])
        #expect(try await Self.list(facade, scratch) == [])
    }

    @Test func `iproxy forwards through the server without loss`() async throws {
        let rig = try await UsbmuxdFixture([Phones.one], in: scratch)
        let count = 8 << 20
        let app = try PatternServer(sending: count, in: scratch)
        let facade = try await RunningUsbmuxServer(in: scratch, phones: rig)
        try await facade.lists([Phones.one])
        let port = try #require(try FreePorts.take().first)
        let arguments = ["-u", Phones.one, "\(port):\(app.port)"]
        let iproxy = try await Program("iproxy", arguments, in: scratch, environment: facade.environment)

        let bytes = try await withDeadline(.seconds(20), { "iproxy: \(iproxy.log)" }) {
            try await Self.download(count, port)
        }

        #expect(bytes.count == count)
        #expect(Pattern.matches(bytes, from: 0))
    }

    @Test func `inetcat sends and receives through the server`() async throws {
        let rig = try await UsbmuxdFixture([Phones.one], in: scratch)
        let app = try EchoServer(in: scratch)
        let facade = try await RunningUsbmuxServer(in: scratch, phones: rig)
        try await facade.lists([Phones.one])

        let inetcat = try await Program(
            "inetcat",
            ["-u", Phones.one, "\(app.port)"],
            in: scratch,
            environment: facade.environment,
            input: .pipe
        )
        try inetcat.write("there and back\n")
        try await inetcat.waitForLine("there and back")
        inetcat.closeInput()

        #expect(try await inetcat.exitStatus() == .exited(0))
    }

    @Test(.needs(.python)) func `pymobiledevice3 lists and forwards through the server`() async throws {
        let tool = try await PythonPeers.pymobiledevice3(in: scratch)
        let rig = try await UsbmuxdFixture([Phones.one, Phones.two], in: scratch)
        let count = 1 << 20
        let app = try PatternServer(sending: count, in: scratch)
        let facade = try await RunningUsbmuxServer(in: scratch, phones: rig)
        try await facade.lists([Phones.one, Phones.two])
        let port = try #require(try FreePorts.take().first)

        let listing = try await Program.run(
            tool,
            ["usbmux", "list", "--simple", "--usbmux", facade.path],
            in: scratch,
            environment: ["NO_COLOR": "1"]
        ).joined()
        let forward = try await Program(
            tool,
            ["usbmux", "forward", "--usbmux", facade.path, "--serial", Phones.two, "\(port)", "\(app.port)"],
            in: scratch
        )
        let bytes = try await withDeadline(.seconds(30), { "pymobiledevice3: \(forward.log)" }) {
            try await Self.download(count, port)
        }

        #expect(listing.contains(Phones.one) && listing.contains(Phones.two))
        #expect(bytes.count == count)
        #expect(Pattern.matches(bytes, from: 0))
    }
}
