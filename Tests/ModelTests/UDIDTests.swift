import FoundationEssentials
import Model
import Testing

@Suite struct UDIDTests {
    @Test func `an Android phone has its serial behind a prefix`() throws {
        let udid = try #require(UDID(androidSerial: "R58M12ABCDE"))

        #expect(udid.text == "android-R58M12ABCDE")
        #expect(udid.serial == "R58M12ABCDE")
        #expect(udid.platform == .android)
        #expect(UDID(udid.text) == udid)
    }

    @Test func `an Android phone cannot have the UDID of an iPhone`() throws {
        let text = "00008030-001A2B3C4D5E6F70"
        let iPhone = try #require(UDID(text))

        #expect(iPhone.platform == .ios)
        #expect(UDID(androidSerial: text) != iPhone)
        #expect(UDID(androidSerial: text)?.platform == .android)
    }

    @Test func `a serial needs no quotes in a shell, a path or a terminal`() {
        #expect(UDID(androidSerial: "192.168.1.2:5555")?.text == "android-192.168.1.2_5555")
        #expect(UDID(androidSerial: "\u{1B}[2J/../é")?.text == "android-__2J_.._é".replacing("é", with: "_"))
        #expect(UDID(androidSerial: "") == nil)
        #expect(UDID(androidSerial: String(repeating: "A", count: 500))?.serial.count == 91)
    }

    @Test(arguments: ["android-", "android-a b", "android-a/b", "android-a:b", "Android-AB", "R58M12ABCDE"])
    func `other text is no UDID`(text: String) { #expect(UDID(text) == nil) }

    @Test func `a phone that is not ready says what to do, and older lists are read`() throws {
        var device = Device(
            udid: try #require(UDID(androidSerial: "A1")),
            transport: .usb,
            attachedAt: Date(timeIntervalSince1970: 0)
        )
        device.state = .unauthorized
        let data = try JSONCoding.encoder().encode(device)
        let text = String(decoding: data, as: UTF8.self)

        #expect(text.contains(#""platform":"android""#) && text.contains(#""state":"unauthorized""#))
        #expect(text.contains("tap Allow"))
        #expect(try JSONCoding.decoder().decode(Device.self, from: data) == device)
        let old = #"{"udid":"00008030-001A2B3C4D5E6F70","transport":"usb","attachedAt":"1970-01-01T00:00:00.000Z"}"#
        #expect(try JSONCoding.decoder().decode(Device.self, from: Data(old.utf8)).isReady)
    }
}
