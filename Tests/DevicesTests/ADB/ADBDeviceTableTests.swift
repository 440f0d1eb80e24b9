import FoundationEssentials
import Model
import Testing

@testable import Devices

@Suite struct ADBDeviceTableTests {
    private typealias Attachment = ADBServerInstance.Attachment
    private let now = Date(timeIntervalSince1970: 1)
    private let later = Date(timeIntervalSince1970: 2)
    private static let pixel = "android-R58M12ABCDE"

    private func record(_ line: String) throws -> ADBDeviceRecord { try #require(ADBDeviceRecord(line: line)) }

    private func attachment(_ id: Int, _ number: UInt64) throws -> Attachment {
        Attachment(id: try #require(ADBTransportID("\(id)")), number: number)
    }

    /// One line of a list; the number of the attachment is 0 for a phone that does not accept requests.
    private func entry(_ line: String, _ number: UInt64) throws -> (record: ADBDeviceRecord, attachment: Attachment?) {
        let record = try record(line)
        return (record, number == 0 ? nil : Attachment(id: record.transportID, number: number))
    }

    private func phone(_ serial: String, boot: String = "", model: String = "Pixel 8") throws -> ADBPhone {
        try #require(ADBPhone(output: "\(serial)\n\n\n\n\(model)\n15\n\(boot)"))
    }

    private func udid(_ text: String = pixel) throws -> UDID { try #require(UDID(text)) }

    /// A table with the Pixel on a cable with transport 1, or over TCP.
    private func table(_ line: String = "R58M12ABCDE device usb:1-2 transport_id:1") throws -> ADBDeviceTable {
        var table = ADBDeviceTable()
        table.apply([try entry(line, 1)], at: now)
        #expect(table.set(try phone("R58M12ABCDE"), of: try attachment(1, 1), at: now))
        #expect(table.setName(output: "Anna’s phone", of: try attachment(1, 1)))
        return table
    }

    @Test func `a phone is listed when its serial was read, and answered when it told its name`() throws {
        var table = ADBDeviceTable()
        table.apply([try entry("R58M12ABCDE device usb:1-2 model:Pixel_8 transport_id:1", 1)], at: now)
        #expect(table.snapshot.devices.isEmpty)
        #expect(table.isPending(try udid()))
        #expect(table.question(of: try attachment(1, 1).id) == .values(try attachment(1, 1)))

        #expect(table.set(try phone("R58M12ABCDE"), of: try attachment(1, 1), at: now))
        #expect(table.snapshot.devices.map(\.udid.text) == [Self.pixel])
        #expect(table.snapshot.devices.first?.isReady == true && table.snapshot.devices.first?.transport == .usb)
        #expect(table.snapshot.unanswered == [try udid()])
        #expect(table.question(of: try attachment(1, 1).id) == .name(try attachment(1, 1)))

        #expect(table.setName(output: "Anna’s phone", of: try attachment(1, 1)))
        #expect(table.snapshot.devices.first?.name?.text == "Anna’s phone" && table.snapshot.unanswered.isEmpty)
        #expect(table.unread.isEmpty)
    }

    @Test func `a list makes a phone over TCP unreachable until its serial was read again, and keeps it listed`() throws
    {
        let line = "10.0.0.7:5555 device model:Pixel_8 transport_id:1"
        var table = try table(line)
        table.apply([try entry(line, 2)], at: later)

        #expect(table.attachment(of: try udid()) == nil)
        #expect(table.isPending(try udid()))
        #expect(table.snapshot.devices.first?.isReady == true && table.snapshot.devices.first?.attachedAt == now)
        #expect(!table.set(try phone("R58M12ABCDE"), of: try attachment(1, 1), at: later))
        #expect(table.set(try phone("R58M12ABCDE"), of: try attachment(1, 2), at: later))
        #expect(table.attachment(of: try udid())?.attachment == (try attachment(1, 2)))
        #expect(table.snapshot.unanswered.isEmpty, "the name is remembered")
    }

    @Test func `another phone that took the transport over TCP is another device`() throws {
        let line = "10.0.0.7:5555 device transport_id:1"
        var table = try table(line)
        table.apply([try entry(line, 2)], at: later)
        #expect(table.set(try phone("RZ8N90XYZ12"), of: try attachment(1, 2), at: later))

        #expect(table.attachment(of: try udid()) == nil)
        #expect(try !table.isPending(udid()))
        let device = table.snapshot.devices.first
        #expect(device?.udid.text == "android-RZ8N90XYZ12" && device?.attachedAt == later && device?.name == nil)
    }

    @Test func `a requested list shows a phone as offline, and a further one as back`() throws {
        let line = "10.0.0.7:5555 device transport_id:1"
        var table = try table(line)
        #expect(table.needsRequests)
        #expect(table.apply(requested: [try record("10.0.0.7:5555 offline transport_id:1")]))
        #expect(try table.attachment(of: udid()) == nil && table.snapshot.devices.first?.state == .offline)
        #expect(!table.apply(requested: [try record("10.0.0.7:5555 offline transport_id:1")]))
        #expect(table.apply(requested: [try record(line)]))
        #expect(table.attachment(of: try udid()) != nil)
    }

    @Test func `a requested list shows that a phone waits for consent, and makes no phone ready`() throws {
        var table = ADBDeviceTable()
        table.apply([try entry("A1 offline usb:1-1 transport_id:1", 0)], at: now)
        #expect(table.needsRequests)
        #expect(table.apply(requested: [try record("A1 unauthorized usb:1-1 transport_id:1")]))
        #expect(table.snapshot.devices.map(\.state) == [.unauthorized])
        #expect(table.apply(requested: [try record("A1 device usb:1-1 transport_id:1")]))
        #expect(table.snapshot.devices.map(\.state) == [.offline] && table.reachable.isEmpty)
        table.apply([try entry("A1 device usb:1-1 transport_id:1", 1)], at: later)
        #expect(!table.needsRequests && table.unread.count == 1)
    }

    @Test func `a phone on a cable needs no requests`() throws { #expect(try !table().needsRequests) }

    @Test func `one phone by cable and over Wi-Fi is one device with two transports, and the cable is used`() throws {
        var table = try table()
        table.apply(
            [
                try entry("R58M12ABCDE device usb:1-2 transport_id:1", 1),
                try entry("adb-R58M12ABCDE-x._adb-tls-connect._tcp device transport_id:2", 2),
            ],
            at: now
        )
        #expect(table.set(try phone("R58M12ABCDE"), of: try attachment(2, 2), at: now))

        #expect(table.snapshot.devices.map(\.udid.text) == [Self.pixel, Self.pixel])
        #expect(table.snapshot.devices.map(\.transport) == [.usb, .network])
        #expect(table.attachment(of: try udid())?.attachment == (try attachment(1, 1)))
        #expect(table.reachable.count == 1)
    }

    @Test func `of two phones with one serial only the first one is used`() throws {
        let (one, two) = ("6f0bbd2c-9a3b-4c1c-8a56-0d1b3c0f2f11", "6f0bbd2c-9a3b-4c1c-8a56-0d1b3c0f2f12")
        var table = ADBDeviceTable()
        let lines = [
            "0123456789ABCDEF device usb:1-2 transport_id:1", "0123456789ABCDEF device usb:1-3 transport_id:2",
        ]
        table.apply([try entry(lines[0], 1), try entry(lines[1], 2)], at: now)
        #expect(table.set(try phone("0123456789ABCDEF", boot: one), of: try attachment(1, 1), at: now))
        #expect(table.set(try phone("0123456789ABCDEF", boot: two), of: try attachment(2, 2), at: now))

        let shared = try udid("android-0123456789ABCDEF")
        #expect(table.attachment(of: shared)?.attachment == (try attachment(1, 1)))
        #expect(table.sharedSerials == [shared] && table.snapshot.devices.count == 1)
        table.apply([try entry(lines[1], 2)], at: later)
        #expect(table.attachment(of: shared)?.attachment == (try attachment(2, 2)) && table.sharedSerials.isEmpty)
    }

    @Test(arguments: [
        ("usb:1-2", "usb:1-3", "Pixel 8", true), ("usb:1-2", "", "Pixel 8", false), ("", "", "Pixel 8", false),
        ("usb:1-2", "", "Galaxy S24", true),
    ])
    func `two phones with one serial and no boot ID are told apart by their cables and models`(
        first: String,
        second: String,
        model: String,
        areTwo: Bool
    ) throws {
        var table = ADBDeviceTable()
        table.apply(
            [
                try entry("0123456789ABCDEF device \(first) transport_id:1", 1),
                try entry("192.0.2.1:5555 device \(second) transport_id:2", 2),
            ],
            at: now
        )
        #expect(table.set(try phone("0123456789ABCDEF"), of: try attachment(1, 1), at: now))
        #expect(table.set(try phone("0123456789ABCDEF", model: model), of: try attachment(2, 2), at: now))

        #expect(table.sharedSerials == (areTwo ? [try udid("android-0123456789ABCDEF")] : []))
    }

    @Test func `a phone that cannot be asked is listed with its state, and never reached`() throws {
        var table = ADBDeviceTable()
        table.apply(
            [
                try entry("A1 unauthorized usb:1-1 transport_id:1", 0),
                try entry("B2 offline usb:1-2 transport_id:2", 0),
                try entry("C3 no permissions (user in plugdev group); see [http://x] usb:1-3 transport_id:3", 0),
                try entry("D4 recovery usb:1-4 transport_id:4", 0), try entry("E5 device usb:1-5 transport_id:5", 1),
            ],
            at: now
        )
        #expect(table.set(nil, of: try attachment(5, 1), at: now))

        #expect(
            table.snapshot.devices.map(\.state) == [.unauthorized, .offline, .noPermissions, .unavailable, .offline]
        )
        #expect(table.snapshot.devices.map(\.udid.serial) == ["A1", "B2", "C3", "D4", "E5"])
        #expect(table.reachable.isEmpty)
        #expect(table.unread == [try attachment(5, 1).id], "it is asked again")
    }

    @Test func `a phone that claims the serial of a ready one by its attachment changes nothing`() throws {
        var table = try table()
        table.apply(
            [
                try entry("R58M12ABCDE device usb:1-2 transport_id:1", 1),
                try entry("R58M12ABCDE unauthorized usb:1-3 transport_id:2", 0),
            ],
            at: later
        )
        #expect(table.snapshot.devices.map(\.state) == [.ready])
    }

    @Test func `a replugged phone keeps its values and has another time`() throws {
        var table = try table()
        table.apply([], at: later)
        #expect(table.snapshot.devices.isEmpty && table.reachable.isEmpty)
        table.apply([try entry("R58M12ABCDE device usb:1-2 transport_id:2", 2)], at: later)
        #expect(table.set(try phone("R58M12ABCDE"), of: try attachment(2, 2), at: later))
        #expect(table.snapshot.devices.first?.attachedAt == later)
        #expect(!table.setName(output: "old", of: try attachment(1, 1)))
    }
}
