import FoundationEssentials
import Model
import TestSupport
import Testing

@Suite(.needs(.usbmuxd, .python), .scratchFolder) struct ListTests {
    private let scratch = ScratchFolder.current
    private let phone = "00008030-001A2B3C4D5E6F70"

    @Test func `an app on a probe port is listed, and its ID survives restarts of app, cable and broker`() async throws
    {
        let app = try await SampleApp(address: PhoneOptions.loopback, port: 9_876, in: scratch)
        let rig = try await UsbmuxdFixture(in: scratch)
        try await rig.attach(phone, .ofItsOwn)
        let broker = try await RunningBroker(in: scratch, phones: rig)

        let id = try await eventually("the app is online") { try await self.id(broker, state: "online") }
        try await app.quit()
        try await eventually("the app is offline") { try await self.id(broker, state: "offline") == id }
        let again = try await SampleApp(address: PhoneOptions.loopback, port: 9_876, in: scratch)
        try await eventually("the app is back") { try await self.id(broker, state: "online") == id }
        try await rig.detach(phone)
        try await eventually("the phone took it along") { try await self.id(broker, state: "offline") == id }
        try await rig.attach(phone, .ofItsOwn)
        try await eventually("the phone brought it back") { try await self.id(broker, state: "online") == id }
        try await broker.restart()
        try await eventually("the broker knows it again") { try await self.id(broker, state: "online") == id }
        try await again.quit()
    }

    @Test func `an app that fails the first identification is probed again and leaves no second endpoint`() async throws
    {
        let port: UInt16 = 9_876
        let first = try await SampleApp(address: PhoneOptions.loopback, port: port, in: scratch)
        let rig = try await UsbmuxdFixture(in: scratch)
        try await rig.attach(phone, .ofItsOwn)
        let broker = try await RunningBroker(in: scratch, phones: rig)
        let id = try await eventually("the app is online") { try await self.id(broker, state: "online") }
        try await first.quit()
        try await eventually("the app is offline") { try await self.id(broker, state: "offline") == id }

        let shy = try await SampleApp(address: PhoneOptions.loopback, port: port, shy: 2, in: scratch)

        try await eventually("it is listed by its port") { try await broker.endpoints().count == 2 }
        try await eventually("the app said its name") {
            let all = try await broker.endpoints()
            return all.map(\.id.text) == [id] && all.first?.state == .online
        }
        try await shy.quit()
    }

    @Test func `a phone's endpoint was last seen when it last answered`() async throws {
        _ = try await SampleApp(address: PhoneOptions.loopback, port: 9_876, in: scratch)
        let rig = try await UsbmuxdFixture(in: scratch)
        try await rig.attach(phone, .ofItsOwn)
        let broker = try await RunningBroker(in: scratch, phones: rig)

        let first = try await eventually("it is seen") { try await broker.endpoints().first?.lastSeenAt }

        try await eventually(within: .seconds(5), "it is seen again") {
            try await broker.endpoints().first?.lastSeenAt ?? first > first
        }
    }

    @Test(.needs(.root, .namespaces, .avahi))
    func `one app on network and USB is one endpoint, and its tunnel prefers USB`() async throws {
        let host = try await AvahiHost(in: scratch)
        let app = try await SampleApp(boot: "b1", in: scratch)
        let rig = try await UsbmuxdFixture([phone], in: scratch)
        let broker = try await RunningBroker(
            in: scratch,
            phones: rig,
            host: host,
            configuration: "[devices]\nprobe_ports = [\(app.port)]\n"
        )
        let publisher = try await app.advertise(through: host)

        let routes = try await eventually("both routes are in one row") {
            let rows = try await broker.ask("list", "--json").joined()
            return rows.contains("\"network\"") && rows.contains("\"usb\"") ? rows : nil
        }
        #expect(routes.components(separatedBy: "\"routes\"").count == 2, "one row: \(routes)")
        let id = try #require(try await broker.endpoints().first).id.text
        let shown = try await broker.ask("show", id).joined(separator: "\n")
        #expect(shown.contains("127.0.0.1:\(app.port) on lo, pending"), "\(shown)")
        let approved = try await broker.ask("approve", id).joined()
        #expect(approved.contains("127.0.0.1%lo, announced by "), "\(approved)")
        let port = try await broker.forward("tcp:0", "--endpoint", id)
        #expect(try await broker.fetch("/health", port: port).contains("\"status\""))

        try await rig.detach(phone)
        try await eventually("the tunnel moved to the network") {
            (try? await broker.fetch("/health", port: port))?.contains("\"status\"") == true
        }
        publisher.kill()
    }

    @Test(.needs(.root, .namespaces, .avahi))
    func `Bonjour, USB and added endpoints are one list`() async throws {
        let host = try await AvahiHost(in: scratch)
        let shop = try await SampleApp(address: "0.0.0.0", in: scratch)
        let chat = try await SampleApp("com.example.chat", in: scratch)
        _ = try await SampleApp("com.example.phone", address: PhoneOptions.loopback, port: 9_876, in: scratch)
        let rig = try await UsbmuxdFixture(in: scratch)
        try await rig.attach(phone, .ofItsOwn)
        let broker = try await RunningBroker(in: scratch, phones: rig, host: host)
        _ = try await shop.advertise(through: host)
        _ = try await broker.ask("add", "Simulator", "127.0.0.1:\(chat.port)", "--kind", "appreveal")

        let table = try await eventually("all three are online") {
            let lines = try await broker.ask("list")
            return lines.count(where: { $0.contains("  online  ") }) == 3 ? lines : nil
        }

        #expect(table.count == 4, "\(table)")
        try await eventually("each source is told of") {
            let sources = try await broker.endpoints().map { $0.sources.map(\.rawValue).joined(separator: "+") }
            return sources.sorted() == ["bonjour", "config", "usbmuxd"]
        }
    }

    /// The ID of the only endpoint, or nil if its state differs.
    private func id(_ broker: RunningBroker, state: String) async throws -> String? {
        struct List: Decodable {
            struct Row: Decodable {
                let id: String
                let state: String
            }
            let endpoints: [Row]
        }
        let json = try await broker.ask("list", "--json").joined()
        let rows = try JSONDecoder().decode(List.self, from: Data(json.utf8)).endpoints
        #expect(rows.count <= 1, "\(rows)")
        return rows.first { $0.state == state }?.id
    }
}
