import Model
import TestSupport
import Testing

@testable import Devices

@Suite struct UsbmuxReplyTests {
    private static func record(_ properties: String, outer: String = "<key>DeviceID</key><integer>4</integer>")
        -> String
    { "<dict>\(outer)<key>Properties</key><dict>\(properties)</dict></dict>" }

    private static func reply(_ inner: String) throws -> UsbmuxReply {
        try UsbmuxReply(UsbmuxMessage(tag: 0, body: .propertyList(Array(MuxMessage.document(inner).utf8))))
    }

    private static let serial = "<key>SerialNumber</key><string>\(Phones.one)</string>"
    private static let cable = "<key>ConnectionType</key><string>USB</string>"

    @Test func `usbmuxd's own records are decoded completely`() throws {
        let udid = try #require(UDID(Phones.one))

        let reply = try Self.reply(MuxMessage.attached(4, "00008030001A2B3C4D5E6F70"))

        #expect(
            reply
                == .attached(
                    UsbmuxDeviceRecord(deviceID: 4, udid: udid, transport: .usb, productID: 4776, locationID: 65537)
                )
        )
    }

    @Test(arguments: [
        record(serial + cable), record(serial), record(cable + "<key>UDID</key><string>\(Phones.one)</string>"),
        record(serial + cable + "<key>UDID</key><string></string>"),
        record(cable + "<key>DeviceID</key><integer>4</integer>" + serial, outer: ""),
        record(serial + cable + "<key>ProductID</key><string>odd</string><key>LocationID</key><integer>-1</integer>"),
        record(serial + cable + "<key>NetworkAddress</key><data>AgAA</data>"),
        // netmuxd 0.4.3 sends a whole `sockaddr_storage`.
        record(serial + cable + "<key>NetworkAddress</key><data>\(String(repeating: "A", count: 171))=</data>"),
    ])
    func `records of every implementation name the device`(record: String) throws {
        guard case .devices(let devices) = try Self.reply(MuxMessage.list([record])) else {
            Issue.record("no list")
            return
        }

        #expect(devices.map(\.deviceID) == [4])
        #expect(devices.map(\.udid.text) == [Phones.one])
        #expect(devices.map(\.transport) == [.usb])
    }

    @Test(arguments: [
        record(cable), record(serial + "<key>ConnectionType</key><string>Telepathy</string>"),
        record(serial + cable, outer: "<key>DeviceID</key><integer>0</integer>"), record(serial + cable, outer: ""),
        record(serial + cable, outer: "<key>DeviceID</key><integer>-1</integer>"),
        record(serial + cable, outer: "<key>DeviceID</key><integer>4294967296</integer>"),
        record(cable + "<key>SerialNumber</key><string>\u{202E}not a udid</string>"),
        record(cable + "<key>SerialNumber</key><integer>12</integer>"), "<string>record</string>", "<dict/>",
        "<dict><key>DeviceID</key><integer>4</integer></dict>",
    ])
    func `an unusable record does not hide the others`(record: String) throws {
        let reply = try Self.reply(MuxMessage.list([record, MuxMessage.attached(9, Phones.two)]))

        guard case .devices(let devices) = reply else {
            Issue.record("no list")
            return
        }
        #expect(devices.map(\.deviceID) == [9])
    }

    @Test func `a device on USB and network has two records`() throws {
        let reply = try Self.reply(
            MuxMessage.list([
                MuxMessage.attached(1, Phones.one), MuxMessage.attached(2, Phones.one, transport: "Network"),
            ])
        )

        guard case .devices(let devices) = reply else {
            Issue.record("no list")
            return
        }
        #expect(devices.map(\.transport) == [.usb, .network])
        #expect(devices.last?.productID == nil)
    }

    @Test(
        arguments: [
            (0, UsbmuxResult.ok), (1, .badCommand), (2, .badDevice), (3, .refused), (6, .badVersion),
            (77, UsbmuxResult(code: 77)),
        ] as [(UInt32, UsbmuxResult)]
    )
    func `each result code has its name`(code: UInt32, expected: UsbmuxResult) throws {
        let reply = try Self.reply(
            "<dict><key>MessageType</key><string>Result</string><key>Number</key><integer>\(code)</integer></dict>"
        )

        #expect(reply == .result(expected))
        #expect(expected.code == code)
    }

    @Test func `unsolicited messages are decoded, and unknown ones have no effect`() throws {
        #expect(try Self.reply(MuxMessage.detached(5)) == .detached(5))
        #expect(try Self.reply("<dict><key>MessageType</key><string>Paired</string></dict>") == .other("Paired"))
        #expect(try Self.reply(MuxMessage.paired(5)) == .paired(5))
        #expect(try Self.reply("<dict><key>MessageType</key><string>Attached</string></dict>") == .other("Attached"))
    }

    @Test func `of a pair record only its existence is kept`() throws {
        #expect(try Self.reply("<dict><key>PairRecordData</key><data>YQ==</data></dict>") == .pairRecord)
    }

    @Test(arguments: [
        "<dict/>", "<array/>", "<string>Result</string>", "<dict><key>MessageType</key><string>Result</string></dict>",
        "<dict><key>MessageType</key><string>Detached</string></dict>", "<dict><key>DeviceList</key><true/></dict>",
        "<dict><key>MessageType</key><integer>8</integer></dict>", "<dict><key>a</key></dict>", "<integer>x</integer>",
    ])
    func `a list that is not a reply is an error`(inner: String) {
        #expect(throws: UsbmuxError.self) { try Self.reply(inner) }
    }
}
