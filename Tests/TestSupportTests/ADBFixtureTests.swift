import TestSupport
import Testing

@Suite(.needs(.adb), .scratchFolder) struct ADBFixtureTests {
    private let scratch = ScratchFolder.current

    @Test func `a simulated Android phone is attached and detached, and survives a restart of the adb server`()
        async throws
    {
        let rig = try await ADBFixture(in: scratch)
        #expect(try await rig.request("host:devices-l") == "")

        try await rig.attach(AndroidPhone("R58M12ABCDE"))
        let first = try await rig.request("host:devices-l")
        #expect(first.contains("model:Pixel_8"))

        try await rig.detach("R58M12ABCDE")
        try await rig.attach(AndroidPhone("R58M12ABCDE"))
        #expect(try await rig.request("host:devices-l") != first)

        try await rig.restart()
        #expect(try await rig.request("host:devices-l").contains("model:Pixel_8"))
    }

    @Test func `a connection to a port of an Android phone reaches the app that listens there`() async throws {
        let app = try EchoServer(in: scratch)
        let rig = try await ADBFixture([AndroidPhone("R58M12ABCDE")], in: scratch)
        let port = try FreePorts.take()[0]
        let listed = await rig.listedSerial(of: "R58M12ABCDE")
        try await rig.request("host-serial:\(listed):forward:tcp:\(port);tcp:\(app.port)")

        #expect(await LoopbackClient.echoes(from: port, within: .seconds(10)))
    }

    @Test func `a phone over TCP keeps its transport, also if another phone takes its place`() async throws {
        let one = AndroidPhone("R58M12ABCDE", attachment: .tcp)
        let rig = try await ADBFixture([one], in: scratch)
        let listed = await rig.listedSerial(of: one.serial)
        #expect(try await rig.request("host-serial:\(listed):get-state") == "device")

        try await rig.detach(one.serial)
        #expect(try await rig.request("host:devices").contains("offline"))
        try await rig.attach(AndroidPhone("0123456789ABCDEF", attachment: .tcp), inPlaceOf: one.serial)

        #expect(await rig.listedSerial(of: "0123456789ABCDEF") == listed)
    }
}
