import TestSupport
import Testing

@testable import Devices

@Suite struct PropertyListValidatorTests {
    private static func deep(_ count: Int) -> String {
        String(repeating: "<array>", count: count) + String(repeating: "</array>", count: count)
    }

    @Test(arguments: [
        MuxMessage.attached(1, Phones.one), "<dict/>", "<array></array>", "<true/>",
        "<dict>\n\t<key>a</key><data>\nAA==</data></dict>",
        "<!-- <dict> --><dict></dict>", "<dict ></dict >", deep(30),
    ])
    func `the elements of property lists are accepted`(inner: String) throws {
        try PropertyListValidator.validate(Array(MuxMessage.document(inner).utf8))
    }

    @Test(arguments: [
        "bplist00\u{1}", "", "no list at all", "<plist>", "<plist><dict></plist>", "</plist>",
        "<plist></plist></plist>", "<",
        "<plist", "<plist><!-- </plist>", "<!-->", "<?xml", "<plist><bomb/></plist>",
        "<plist><dict a=\"/\"></dict></plist>",
        "<plist><string><![CDATA[</string>]]></string></plist>", "<!DOCTYPE plist [<!ENTITY a \"b\">]><plist></plist>",
        "<plist></dict/></plist>",
    ])
    func `text that could harm a parser or is not a list is rejected`(text: String) {
        #expect(throws: UsbmuxError.self) { try PropertyListValidator.validate(Array(text.utf8)) }
    }

    @Test(arguments: [32, 1_000, 100_000])
    func `a list that is nested too deep is rejected, complete or truncated, hidden in comments or not`(depth: Int) {
        let hidden = String(repeating: "<array><!-- </array> -->", count: depth)
        for inner in [Self.deep(depth), String(repeating: "<dict>", count: depth), hidden] {
            #expect(throws: UsbmuxError.self) {
                try PropertyListValidator.validate(Array(MuxMessage.document(inner).utf8))
            }
        }
    }

    @Test func `random bytes are accepted or rejected without a crash`() {
        var random = SeededGenerator(seed: 7)
        let alphabet = Array("<>/!-?[]dictarrayplist \u{0}\"".utf8) + [0x80, 0xFF]

        for _ in 0..<20_000 {
            let text = (0..<Int.random(in: 0...60, using: &random)).map { _ in
                alphabet.randomElement(using: &random) ?? 0
            }
            _ = try? UsbmuxReply(UsbmuxMessage(tag: 0, body: .propertyList(text)))
        }
    }
}
