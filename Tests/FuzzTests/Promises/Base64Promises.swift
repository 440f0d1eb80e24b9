import Foundation
import Model

/// Promises for base64: every usual form of some bytes is read as these bytes, and no text has two readings.
enum Base64Promises {
    static func check(_ input: [UInt8]) throws(Violation) {
        try read(String(decoding: input, as: UTF8.self))

        var choices = Choices(input)
        let bytes = choices.run()
        let (text, isStandard) = written(bytes, &choices)
        let decoded = Base64Decoder.decode(text)
        try promise("every form is read", decoded.map { Array($0.data) } == bytes)
        try promise("the standard form is known", decoded?.isStandard == true || !isStandard)

        var typo = Array(text.utf8)
        for _ in 0..<choices.number(below: 4) { choices.edit(&typo) }
        try read(String(decoding: typo, as: UTF8.self))
    }

    private static func read(_ text: String) throws(Violation) {
        guard let (data, isStandard) = Base64Decoder.decode(text) else {
            return try promise("standard base64 is read", !Self.isStandard(Array(text.utf8)))
        }
        try promise("nothing is added", data.count <= text.utf8.count)
        try promise("only standard base64 is called so", isStandard == Self.isStandard(Array(text.utf8)))
        let again = Base64Decoder.decode(data.base64EncodedString())
        try promise("what was read has one standard form", again?.data == data && again?.isStandard == true)
        let type = ImageType(of: data)
        try promise("a type is found by the beginning", type == nil || !data.isEmpty)
    }

    /// A second implementation of the rule: groups of four letters, with padding at the end (RFC 4648, section 4).
    private static func isStandard(_ text: [UInt8]) -> Bool {
        let alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8
        let letters = text.prefix { alphabet.contains($0) }
        let padding = text[letters.count...]
        return text.count % 4 == 0 && padding.count <= 2 && padding.allSatisfy { $0 == UInt8(ascii: "=") }
    }

    /// Writes bytes in one of the forms of servers.
    private static func written(_ bytes: [UInt8], _ choices: inout Choices) -> (text: String, isStandard: Bool) {
        var text = Data(bytes).base64EncodedString()
        let standard = text
        if choices.number(below: 2) == 1 { text = text.replacing("+", with: "-").replacing("/", with: "_") }
        if choices.number(below: 2) == 1 { text = String(text.prefix { $0 != "=" }) }
        let width = choices.number(below: 80)
        if width > 0 {
            let end = choices.one(of: ["\n", "\r\n", " "])
            text = stride(from: 0, to: text.utf8.count, by: width).map { start in
                String(text.dropFirst(start).prefix(width)) + end
            }.joined()
        }
        let prefix = choices.one(of: [
            "", "data:;base64,", "data:image/png;base64,", "\nDATA:image/png;charset=x;BASE64,",
        ])
        return (prefix + text, prefix.isEmpty && text == standard)
    }
}
