@testable import Model

/// Promises for JSON: exactly RFC 8259 is accepted, and parsed text is written unchanged.
enum JSONPromises {
    static func check(_ input: [UInt8]) throws(Violation) {
        try read(input)
        var choices = Choices(input)
        var text: [UInt8] = []
        write(&text, &choices, depth: 0)
        try read(text)
        for _ in 0..<choices.number(below: 4) { choices.edit(&text) }
        try read(text)
    }

    private static func read(_ bytes: [UInt8]) throws(Violation) {
        // A byte order mark is not part of the grammar, and is skipped (RFC 8259, section 8.1).
        let text = bytes.starts(with: "\u{FEFF}".utf8) ? Array(bytes.dropFirst(3)) : bytes
        let grammar = JSONGrammar(text)
        let value: JSON
        do throws(JSONError) { value = try JSON(parsing: bytes) } catch { return try refused(error, grammar, bytes) }
        try promise("only JSON is taken for it", grammar.isJSON && grammar.depth <= 128 && !grammar.hasDuplicateNames)
        let written = value.bytes
        try promise(
            "what was read is written so that it is read again",
            (try? JSON(parsing: written))?.bytes == written
        )
        try promise("what is written has no controls, and is text", isPlain(written))
        try promise("what stands in between is all that is left out", written == squeezed(text) || bytes.contains(0x5C))
        try number(value)
    }

    private static func refused(_ error: JSONError, _ grammar: JSONGrammar, _ bytes: [UInt8]) throws(Violation) {
        try promise("the place of an error is in the text", (0...bytes.count).contains(error.offset))
        switch error.reason {
        case .tooDeep: try promise("128 levels are read", grammar.depth > 128)
        case .duplicateName:
            // Escapes can spell one name in two ways, which the grammar does not detect.
            try promise(
                "only a name that comes twice is called so",
                grammar.hasDuplicateNames || grammar.hasEscapedNames
            )
        case .unexpected, .unexpectedEnd, .invalidUTF8: try promise("JSON is read", !grammar.isJSON)
        }
    }

    private static func number(_ value: JSON) throws(Violation) {
        guard let number = value.number, let int = number.int, int.magnitude < 1 << 53 else { return }
        try promise("a whole number is the number", number.double == Double(int))
    }

    private static func isPlain(_ bytes: [UInt8]) -> Bool {
        bytes.allSatisfy { $0 >= 0x20 } && String(validating: bytes, as: UTF8.self) != nil
    }

    /// Removes whitespace outside strings, for texts without a backslash.
    private static func squeezed(_ bytes: [UInt8]) -> [UInt8] {
        var isInside = false
        return bytes.filter { byte in
            if byte == UInt8(ascii: "\"") { isInside.toggle() }
            return isInside || byte > 0x20
        }
    }

    private static let words = [
        "null", "true", "false", "0", "-0", "1.0", "-1.5e+10", "9007199254740993", "1E400", "\"\"", "\"a\"",
        "\"\u{E9}\"",
        "\"e\u{301}\"", "\"\\ud83d\\ude00\"", "\"\\udc00\"", "\"\\\"\\\\\\/\\n\"", "\"\\u0000\"",
    ]
    private static let names = ["a", "b", "\u{E9}", "e\u{301}", "\\u0061", "", "\u{1F600}"]

    /// Writes a JSON value, possibly with duplicate names.
    private static func write(_ text: inout [UInt8], _ choices: inout Choices, depth: Int) {
        let space = choices.one(of: ["", "", " ", "\r\n\t "])
        text += space.utf8
        let count = choices.number(below: 5)
        switch depth < 140 && !choices.isEmpty ? choices.byte() % 4 : 0 {
        case 1:
            text += "[".utf8
            for index in 0..<count {
                if index > 0 { text += ",".utf8 }
                write(&text, &choices, depth: depth + 1)
            }
            text += "]".utf8
        case 2:
            text += "{".utf8
            for index in 0..<count {
                text += "\(index > 0 ? "," : "")\(space)\"\(choices.one(of: names))\"\(space):".utf8
                write(&text, &choices, depth: depth + 1)
            }
            text += "}".utf8
        case 3:
            // A deeply nested value that reaches the depth limit.
            let height = choices.number(below: 140)
            text += String(repeating: "[", count: height).utf8
            write(&text, &choices, depth: depth + height)
            text += String(repeating: "]", count: height).utf8
        default: text += choices.one(of: words).utf8
        }
        text += space.utf8
    }
}
