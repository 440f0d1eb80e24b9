import Foundation
import Model
import TestSupport
import Testing

/// The names of phones, told by their lockdownd through the unmodified usbmuxd.
@Suite(.needs(.usbmuxd), .timeLimit(.minutes(3)), .scratchFolder) struct PhoneNameTests {
    private let scratch = ScratchFolder.current
    private static let name = "Anna’s iPhone"

    private static func options(_ lockdown: LockdownServer) -> PhoneOptions {
        var options = PhoneOptions.ofItsOwn
        options.lockdown = lockdown
        return options
    }

    @Test func `devices shows the name and the model of a phone, and the UDID of a phone without a name`() async throws
    {
        let rig = try await UsbmuxdFixture([Phones.two], in: scratch)
        try await rig.attach(Phones.one, Self.options(LockdownServer(name: Self.name, in: scratch)))
        let broker = try await RunningBroker(in: scratch, phones: rig)

        let table = try await eventually("the name is shown") {
            let lines = try await broker.ask("devices")
            return lines.contains { $0.contains(Self.name) } ? lines : nil
        }
        #expect(table.contains { $0.contains(Phones.one) && $0.contains("iPhone15,3 17.5") }, "\(table)")
        #expect(table.contains { $0.contains(Phones.two) && $0.contains("  -  ") }, "\(table)")

        let json = try await broker.ask("devices", "--json").joined()
        let devices = try JSONCoding.decoder().decode(ListResponse<Device>.self, from: Data(json.utf8)).items
        let named = try #require(devices.first { $0.udid.text == Phones.one })
        #expect(named.name?.text == Self.name)
        #expect(named.productType?.text == "iPhone15,3" && named.productVersion?.text == "17.5")
        #expect(devices.first { $0.udid.text == Phones.two }.map { $0.name == nil } == true)
    }

    @Test func `a note of a phone is in the list, also after a restart, until it is removed`() async throws {
        let rig = try await UsbmuxdFixture([Phones.two], in: scratch)
        let broker = try await RunningBroker(in: scratch, phones: rig)
        try await eventually("the phone is listed") { try await broker.devices().count == 1 }
        _ = try await broker.ask("devices", "note", Phones.two, "--label", "drawer 3")
        _ = try await broker.ask("devices", "note", Phones.two, "--note", "cracked screen")
        #expect(try await broker.ask("devices").last?.contains("drawer 3") == true)

        try await broker.restart(isKilled: true)
        try await eventually("the phone is listed with its note") {
            let device = try await broker.devices().first
            return device?.label?.text == "drawer 3" && device?.note?.text == "cracked screen"
        }
        _ = try await broker.ask("devices", "note", Phones.two, "--label", "", "--note", "")
        #expect(try await broker.devices().first?.label == nil)
        #expect(try await broker.ask("devices").first?.contains("LABEL") == false)
    }

    @Test func `a phone is not paired until a record is saved, and its ports are reached before`() async throws {
        let app = try EchoServer(in: scratch)
        let rig = try await UsbmuxdFixture([Phones.one], in: scratch)
        let broker = try await RunningBroker(in: scratch, phones: rig)
        try await eventually("the pairing is known") { try await broker.devices().first?.isPaired == false }
        #expect(try await broker.ask("devices").first?.contains("PAIRED") == true)
        let port = try await broker.forward("tcp:0:\(app.port)", "--device", Phones.one)
        #expect(await LoopbackClient.echoes(from: port, within: .seconds(10)))

        let usbmuxd = try MuxPeer(to: rig.socketPath)
        let id = try #require(try MuxPeer(to: rig.socketPath).devices()[Phones.one])
        let saved = try usbmuxd.ask(
            "SavePairRecord",
            "<key>PairRecordID</key><string>\(Phones.one)</string><key>PairRecordData</key><data>\(Self.pairRecord)</data>"
                + "<key>DeviceID</key><integer>\(id)</integer>"
        )
        #expect(saved["Number"] as? Int == 0)
        try await eventually("the phone is paired") { try await broker.devices().first?.isPaired == true }
        #expect(try await broker.ask("devices").first?.contains("PAIRED") == false)
    }

    /// A property list, which usbmuxd parses before it saves it.
    private static let pairRecord = Data(
        MuxMessage.document("<dict><key>HostID</key><string>3F0A</string></dict>").utf8
    ).base64EncodedString()

    @Test(.needs(.python)) func `an app on the cable is named after its phone, and keeps that ID`() async throws {
        let lockdown = try LockdownServer(name: Self.name, in: scratch)
        let app = try await SampleApp(address: PhoneOptions.loopback, in: scratch)
        let rig = try await UsbmuxdFixture(in: scratch)
        let broker = try await RunningBroker(
            in: scratch,
            phones: rig,
            configuration: "[devices]\nprobe_ports = [\(app.port)]\n"
        )
        try await rig.attach(Phones.one, Self.options(lockdown))

        try await eventually("the app is listed") {
            try await broker.endpoints().map(\.id.text) == ["shop-annas-iphone"]
        }
        #expect(try await broker.endpoints().first?.location.deviceName?.text == Self.name)
        let shown = try await broker.ask("show", "shop-annas-iphone").joined(separator: "\n")
        #expect(shown.contains("\(Self.name) (\(Phones.one))"), "\(shown)")

        lockdown.rename(to: "Bert’s iPhone")
        try await rig.detach(Phones.one)
        try await rig.attach(Phones.one, Self.options(lockdown))
        try await eventually("the new name is shown, under the same ID") {
            try await broker.endpoints().contains {
                $0.id.text == "shop-annas-iphone" && $0.location.deviceName?.text == "Bert’s iPhone"
                    && $0.state == .online
            }
        }
        #expect(try await broker.endpoints().count == 1)
    }

    @Test(.needs(.python)) func `a silent or locked phone is listed with its apps, and its name follows`() async throws
    {
        let lockdown = try LockdownServer(name: Self.name, mode: .silent, in: scratch)
        let app = try await SampleApp(address: PhoneOptions.loopback, in: scratch)
        let rig = try await UsbmuxdFixture(in: scratch)
        let broker = try await RunningBroker(
            in: scratch,
            phones: rig,
            configuration: "[devices]\nprobe_ports = [\(app.port)]\n"
        )
        try await rig.attach(Phones.one, Self.options(lockdown))

        try await eventually("the app is listed") {
            try await broker.endpoints().map(\.id.text) == ["shop-phone-5e6f70"]
        }
        let port = try await broker.forward("tcp:0:\(app.port)", "--device", Phones.one)
        #expect(try await broker.fetch("/health", port: port).contains("\"status\""))

        lockdown.set(.locked)
        try await eventually("the phone is asked again") { lockdown.answers > 0 }
        lockdown.set(.usual)
        try await eventually("the unlocked phone tells its name") {
            try await broker.ask("devices").contains { $0.contains(Self.name) }
        }
        #expect(try await broker.endpoints().map(\.id.text) == ["shop-phone-5e6f70"])
    }

    @Test(.needs(.python)) func `pymobiledevice3 reads the same name`() async throws {
        let tool = try await PythonPeers.pymobiledevice3(in: scratch)
        let rig = try await UsbmuxdFixture(in: scratch)
        try await rig.attach(Phones.one, Self.options(LockdownServer(name: Self.name, in: scratch)))
        let broker = try await RunningBroker(in: scratch, phones: rig)
        try await eventually("the name is shown") {
            try await broker.ask("devices").contains { $0.contains(Self.name) }
        }

        let listing = try await Program.run(
            tool,
            ["usbmux", "list", "--usbmux", rig.socketPath],
            in: scratch,
            environment: ["NO_COLOR": "1", "HOME": scratch.path]
        ).joined()

        struct Phone: Decodable {
            let DeviceName: String
            let ProductType: String
            let ProductVersion: String
        }
        let phone = try #require(try JSONDecoder().decode([Phone].self, from: Data(listing.utf8)).first)
        #expect(phone.DeviceName == Self.name)
        #expect(phone.ProductType == "iPhone15,3" && phone.ProductVersion == "17.5")
    }
}
