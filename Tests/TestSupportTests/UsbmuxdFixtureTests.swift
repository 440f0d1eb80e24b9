import TestSupport
import Testing

@Suite(.needs(.usbmuxd), .scratchFolder) struct UsbmuxdFixtureTests {
    private let scratch = ScratchFolder.current
    private let udid = "00008030-001A2B3C4D5E6F70"

    @Test func `a simulated phone is attached and detached, and survives a restart of usbmuxd`() async throws {
        let rig = try await UsbmuxdFixture(in: scratch)
        #expect(try await listing(rig, scratch) == [])

        try await rig.attach(udid)
        #expect(try await listing(rig, scratch) == [udid])

        try await rig.restart()
        #expect(try await listing(rig, scratch) == [udid])

        try await rig.detach(udid)
        #expect(try await listing(rig, scratch) == [])
    }

    @Test func `a connection to a port of the phone reaches the app that listens there`() async throws {
        let app = try EchoServer(in: scratch)
        let rig = try await UsbmuxdFixture([udid], in: scratch)

        let client = try await Program(
            "inetcat",
            ["-u", udid, "\(app.port)"],
            in: scratch,
            environment: rig.clientEnvironment,
            input: .pipe
        )
        try client.write("hello, phone\n")

        try await client.waitForLine("hello, phone")
    }

    @Test func `a phone with the fault neverListed is attached and not listed`() async throws {
        let rig = try await UsbmuxdFixture(in: scratch)
        try await rig.attach(udid, .fault(.neverListed))
        try await rig.attach("0123456789abcdef0123456789abcdef01234567")

        #expect(try await listing(rig, scratch) == ["0123456789abcdef0123456789abcdef01234567"])
    }

    /// Returns the listing of the stock client idevice_id.
    private func listing(_ rig: UsbmuxdFixture, _ scratch: ScratchFolder) async throws -> [String] {
        try await Program.run("idevice_id", ["-l"], in: scratch, environment: rig.clientEnvironment)
            .map { String($0.prefix { $0 != " " }) }
    }
}
