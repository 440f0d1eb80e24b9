import Model
import Testing

@testable import Devices

@Suite struct ADBDeviceRecordTests {
    private func list(_ text: String) -> [ADBDeviceRecord] { ADBDeviceRecord.list(Array(text.utf8)) }

    @Test func `a phone on a cable and one over the network are read`() throws {
        let list = list(
            """
            R58M12ABCDE            device usb:1-2 product:shiba model:Pixel_8 device:shiba transport_id:7
            127.0.0.1:5555         offline transport_id:2

            """
        )

        #expect(list.map(\.serial.text) == ["R58M12ABCDE", "127.0.0.1:5555"])
        #expect(list.map(\.state) == [.ready, .offline])
        #expect(list.map(\.isOnCable) == [true, false])
        #expect(list.map(\.model?.text) == ["Pixel_8", nil])
        #expect(list.map(\.transportID.number) == [7, 2])
    }

    @Test(arguments: [
        ("unauthorized", ADBState.unauthorized), ("authorizing", .authorizing), ("connecting", .connecting),
        (
            "no permissions (missing udev rules? user is in the plugdev group); see "
                + "[http://developer.android.com/tools/device.html]", .noPermissions
        ),
        ("recovery", .other(SanitizedText("recovery"))), ("bootloader", .other(SanitizedText("bootloader"))),
    ])
    func `a state may have spaces`(text: String, state: ADBState) {
        #expect(list("0A1B2C         \(text) usb:3-1.4 transport_id:1").map(\.state) == [state])
    }

    @Test func `unknown keys change nothing`() {
        #expect(list("S device speed:480 future_key:a:b model:X transport_id:3 last:1").map(\.model?.text) == ["X"])
    }

    @Test func `a phone without a serial is read`() {
        let one = list("(no serial number)     unauthorized usb:1-1 transport_id:4")

        #expect(one.map(\.serial.text) == ["(no serial number)"])
        #expect(one.map(\.state) == [.unauthorized])
    }

    @Test(arguments: [
        "S device", "S transport_id:1", "device transport_id:0", "S device transport_id:0", "S device transport_id:-1",
        "S device transport_id:1x", "S device transport_id:99999999999999999999", "", "   ",
    ])
    func `only a damaged line is lost`(line: String) {
        #expect(list("A device transport_id:1\n\(line)\nB device transport_id:2").map(\.serial.text) == ["A", "B"])
    }

    @Test func `a transport is read once, and an endless list is cut`() {
        #expect(list("A device transport_id:1\nB device transport_id:1").map(\.serial.text) == ["A"])
        let endless = (1...5_000).map { "S\($0) device transport_id:\($0)" }.joined(separator: "\n")
        #expect(list(endless).count == ADBDeviceRecord.limit)
    }

    @Test func `terminal escapes and invalid bytes of a name are replaced`() {
        let line = Array("\u{1B}[2JS device model:".utf8) + [0xFF, 0x07] + Array(" transport_id:1".utf8)
        let list = ADBDeviceRecord.list(line)

        #expect(list.map(\.serial.text) == ["\u{FFFD}[2JS"])
        #expect(list.map(\.model?.text) == ["\u{FFFD}\u{FFFD}"])
    }
}
