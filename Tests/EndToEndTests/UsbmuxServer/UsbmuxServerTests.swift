import Foundation
import Glibc
import SystemIO
import TestSupport
import Testing

@Suite(.needs(.usbmuxd), .timeLimit(.minutes(2)), .scratchFolder) struct UsbmuxServerTests {
    private let scratch = ScratchFolder.current

    @Test func `200 clients at once all get their stream without loss`() async throws {
        let rig = try await UsbmuxdFixture([Phones.one], in: scratch)
        let app = try EchoServer(in: scratch)
        let facade = try await RunningUsbmuxServer(in: scratch, phones: rig)
        try await facade.lists([Phones.one])
        let outcomes = Replay<String>()

        // Each client blocks and therefore has its own thread; all start at the same moment.
        let start = ContinuousClock.now + .milliseconds(200)
        for index in 0..<200 {
            startThread(named: "peer-\(index)") { [path = facade.path, port = app.port] in
                usleep(UInt32(max(0, (start - .now) / .microseconds(1))))
                do {
                    let id = try MuxPeer(to: path).devices()[Phones.one] ?? 0
                    let peer = try MuxPeer(to: path)
                    let result = try peer.dial(id, port)
                    let range = index * 65_536..<(index + 1) * 65_536
                    try peer.send(Pattern.bytes(range))
                    let isIntact = try peer.receive(range.count) == Pattern.bytes(range)
                    outcomes.say(result == 0 && isIntact ? "intact" : "result \(result ?? -1), not intact")
                } catch { outcomes.say("\(error)") }
            }
        }
        try await eventually("200 outcomes") { outcomes.soFar.count == 200 }

        #expect(Set(outcomes.soFar) == ["intact"])
        try await eventually("every stream is over") {
            try await facade.broker.ask("status").joined().contains("0 streams")
        }
    }

    @Test func `a listening client survives a restart of usbmuxd, and old device IDs are refused`() async throws {
        let rig = try await UsbmuxdFixture([Phones.one], in: scratch)
        let app = try EchoServer(in: scratch)
        let facade = try await RunningUsbmuxServer(in: scratch, phones: rig)
        try await facade.lists([Phones.one])
        let listener = try MuxPeer(to: facade.path)
        #expect(try listener.ask("Listen")["Number"] as? Int == 0)
        let first = try listener.list()
        let old = try #require(first["DeviceID"] as? UInt32)
        #expect(first["MessageType"] as? String == "Attached")
        #expect(old != 0)

        try await rig.stop()
        let farewell = try listener.list()
        let answer = try MuxPeer(to: facade.path).ask("ReadBUID")["Number"] as? Int
        try await rig.attach(Phones.two)
        try await rig.start()
        let news = [try listener.list(), try listener.list()]

        #expect(farewell["MessageType"] as? String == "Detached")
        #expect(farewell["DeviceID"] as? UInt32 == old)
        #expect(answer == 3)
        #expect(news.allSatisfy { $0["MessageType"] as? String == "Attached" })
        let new = news.compactMap { $0["DeviceID"] as? UInt32 }
        #expect(Set(new).count == 2 && !new.contains(old) && !new.contains(0))
        let peer = try MuxPeer(to: facade.path)
        #expect(try peer.dial(old, app.port) == 2)
        let id = try #require(try peer.devices()[Phones.one])
        #expect(new.contains(id))
        // After two failed Connects the same connection becomes the stream.
        #expect(try peer.dial(id, 9) == 3)
        #expect(try peer.dial(id, app.port) == 0)
        try peer.send([1, 2, 3])
        #expect(try peer.receive(3) == [1, 2, 3])

        let names = (try MuxPeer(to: facade.path).ask("ListListeners")["ListenerList"] as? [NSDictionary])?
            .compactMap { $0["ProgName"] as? String }
        #expect(names == ["peer"])
    }

    @Test func `a client that half-closes still gets the whole reply, which usbmuxd would cut off`() async throws {
        let rig = try await UsbmuxdFixture([Phones.one], in: scratch)
        let app = try EchoServer(in: scratch)
        let facade = try await RunningUsbmuxServer(in: scratch, phones: rig)
        try await facade.lists([Phones.one])
        let peer = try MuxPeer(to: facade.path)
        let id = try #require(try peer.devices()[Phones.one])
        #expect(try peer.dial(id, app.port) == 0)
        let bytes = Pattern.bytes(0..<65_536)

        try peer.send(bytes)
        peer.finish()

        #expect(try peer.receive(bytes.count) == bytes)
    }

    @Test func `a stream that lost its phone or usbmuxd is counted as link lost, a closed one is not`() async throws {
        let rig = try await UsbmuxdFixture([Phones.one], in: scratch)
        let app = try PatternServer(sending: 1_000, in: scratch)
        let echo = try EchoServer(in: scratch)
        let facade = try await RunningUsbmuxServer(in: scratch, phones: rig)
        try await facade.lists([Phones.one])
        func stream(to port: UInt16) throws -> MuxPeer {
            let peer = try MuxPeer(to: facade.path)
            let id = try #require(try peer.devices()[Phones.one])
            let result = try peer.dial(id, port)
            try #require(result == 0, "\(facade.broker.daemon.log)")
            return peer
        }
        func isCounted(_ words: String) async throws -> Bool {
            try await facade.broker.ask("status").joined().contains(words)
        }

        #expect(try stream(to: app.port).receive(2_000).count == 1_000)
        try await eventually("it is over") { try await isCounted(" 0 streams") }
        #expect(try await isCounted(", 0 cut"))
        let unplugged = try stream(to: echo.port)
        try unplugged.send([1])
        #expect(try unplugged.receive(1) == [1])
        try await rig.detach(Phones.one)
        #expect(try unplugged.receive(1).isEmpty)
        try await eventually("it is counted") { try await isCounted(", 1 cut") }

        try await rig.attach(Phones.one)
        try await facade.lists([Phones.one])
        let last = try stream(to: echo.port)
        try await rig.kill()
        #expect(try last.receive(1).isEmpty)
        try await eventually("it is counted") { try await isCounted(", 2 cut") }
    }

    @Test func `the server's socket is private to its user and is removed with the broker`() async throws {
        let facade = try await RunningUsbmuxServer(in: scratch, phones: nil)
        let mode = try FileManager.default.attributesOfItem(atPath: facade.path)[.posixPermissions] as? Int
        let listener = try MuxPeer(to: facade.path)
        #expect(try listener.ask("Listen")["Number"] as? Int == 0)
        #expect(try await facade.broker.ask("status").joined().contains("served at \(facade.path)"))

        facade.broker.daemon.terminate()
        #expect(try await facade.broker.daemon.exitStatus() == .exited(0))

        #expect(mode == 0o600)
        #expect(try listener.frame() == nil)
        #expect(!FileManager.default.fileExists(atPath: facade.path))
    }

    @Test(arguments: [
        ("serve_usbmuxd = \"unix:FOLDER/link/usbmuxd\"\nusbmuxd = \"FOLDER/real/usbmuxd\"", "would connect to itself"),
        ("serve_usbmuxd = \"unix:FOLDER/usbmuxd\"", "would connect to itself"),
        ("serve_usbmuxd = \"localhost:27015\"", "unix:/path"),
        ("serve_usbmuxd = \"unix:FOLDER/mux\"\nenabled = false", "devices.enabled"),
    ])
    func `an invalid serve_usbmuxd path stops the start with 78 and the reason`(
        text: String,
        reason: String
    ) async throws {
        try scratch.makeFolder("real")
        symlink(scratch.file("real"), scratch.file("link"))
        let text = "[devices]\n" + text.replacingOccurrences(of: "FOLDER", with: scratch.path)
        let file = try scratch.write(text, to: "patchbay.toml")
        for arguments in [["--check-config"], ["--state-directory", scratch.file("state")]] {
            let daemon = try await Program(
                Executable.built("patchbayd"),
                ["--config", file] + arguments,
                in: scratch,
                environment: ["USBMUXD_SOCKET_ADDRESS": "UNIX:\(scratch.file("usbmuxd"))"]
            )

            try await daemon.waitForLine(reason)
            #expect(try await daemon.exitStatus() == .exited(78))
        }
    }
}
