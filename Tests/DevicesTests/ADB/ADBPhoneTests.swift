import Model
import Testing

@testable import Devices

@Suite struct ADBPhoneTests {
    private static let boot = "6f0bbd2c-9a3b-4c1c-8a56-0d1b3c0f2f11"

    private func phone(_ lines: String...) -> ADBPhone? { ADBPhone(output: lines.joined(separator: "\r\n")) }

    @Test func `the serial is the identity, and the model and the version are read`() throws {
        let phone = try #require(self.phone("R58M12ABCDE", "", "", "", "Pixel 8", "15", Self.boot))

        #expect(phone.udid.text == "android-R58M12ABCDE" && phone.bootID == Self.boot)
        #expect(phone.model?.text == "Pixel 8" && phone.release?.text == "15" && phone.name == nil)
    }

    @Test func `an emulator is told from others by the name of its virtual device`() {
        #expect(phone("EMULATOR35", "", "Pixel_8_API_35")?.udid.text == "android-EMULATOR35-Pixel_8_API_35")
        #expect(phone("EMULATOR35", "", "", "Old one")?.udid.text == "android-EMULATOR35-Old_one")
    }

    @Test func `a phone without a serial or with a failed command is not identified`() {
        #expect(phone("", "EARLY1")?.udid.text == "android-EARLY1")
        #expect(phone("", "", "", "", "Pixel 8") == nil && ADBPhone(output: "") == nil)
        #expect(phone("S1", "", "", "", "Pixel 8", "15", "cat: permission denied")?.bootID == nil)
    }

    @Test(arguments: [
        ("Anna’s phone\n", "Anna’s phone"), ("null\n", "Pixel 8"), ("", "Pixel 8"), (nil, "Pixel 8"),
        ("cmd: Can't find service: settings\n", "Pixel 8"), ("/system/bin/sh: settings: not found\n", "Pixel 8"),
        ("\u{1B}[31mred\n", "\u{FFFD}[31mred"),
    ])
    func `the name is the one that a person gave, else the model`(output: String?, name: String) throws {
        var phone = try #require(self.phone("S1", "", "", "", "Pixel 8"))
        phone.setName(output: output)
        #expect(phone.name?.text == SanitizedText(name).text)
        #expect(phone.name?.text.contains("\u{1B}") == false)
    }
}
