/// Decodes the escapes of a log: those of JSON strings (RFC 8259, section 7) and of programming languages. Decodes
/// percent-encoding (RFC 3986, section 2.1), character references of HTML, and the caret notation of ESC too.
///
/// A text may have been escaped several times. So an escape begins with any number of backslashes up to 16, and the first
/// character of an escape may itself be an escape. NUL bytes in an escape are ignored, as they are in UTF-16 text.
struct EscapeDecoder {
    enum Step: Equatable {
        /// The bytes may be the beginning of an escape.
        case incomplete
        /// The bytes are an escape of these bytes of UTF-8 text.
        case decoded([UInt8])
        /// The bytes are no escape: the first one stands for itself.
        case plain
    }

    private static let maxBackslashes = 16
    private static let maxLength = 64
    private static let backslash = UInt8(ascii: "\\")
    private static let percent = UInt8(ascii: "%")
    private static let ampersand = UInt8(ascii: "&")
    private static let caret = UInt8(ascii: "^")
    /// The first byte of U+0080 to U+00BF in UTF-8.
    private static let latin: UInt8 = 0xC2
    private static let references: [(name: [UInt8], character: UInt8)] = [
        (Array("quot".utf8), UInt8(ascii: "\"")), (Array("apos".utf8), UInt8(ascii: "'")),
        (Array("amp".utf8), ampersand), (Array("lt".utf8), UInt8(ascii: "<")), (Array("gt".utf8), UInt8(ascii: ">")),
        (Array("nbsp".utf8), 0x20),
    ]

    /// The bytes of the stream since the first one of the escape.
    private var bytes: [UInt8] = []
    /// The same bytes without NUL, and with the first character decoded.
    private var text: [UInt8] = []
    /// The number of bytes that stand for the first character.
    private var firstLength = 1

    /// True between two escapes.
    var isIdle: Bool { bytes.isEmpty }

    static func isFirst(_ byte: UInt8) -> Bool {
        byte == backslash || byte == percent || byte == ampersand || byte == caret || byte == latin
    }

    /// Reads a byte of an escape.
    mutating func read(_ byte: UInt8) -> Step {
        bytes.append(byte)
        guard bytes.count < Self.maxLength else { return .plain }
        if byte == 0 { return .incomplete }
        text.append(byte)
        guard case .decoded(let characters) = step else { return step }
        guard characters.count == 1, [Self.backslash, Self.percent, Self.ampersand].contains(characters[0]) else {
            return .decoded(characters)
        }
        (text, firstLength) = (characters, bytes.count)
        return .incomplete
    }

    /// Ends the escape and returns its bytes.
    mutating func take() -> [UInt8] {
        defer { (bytes, text, firstLength) = ([], [], 1) }
        return bytes
    }

    /// Ends an escape that is none. Returns the first character, the bytes that stand for it, and the bytes after it.
    mutating func takeFirst() -> (character: UInt8, raw: ArraySlice<UInt8>, rest: ArraySlice<UInt8>) {
        let (character, length) = (text.first ?? 0, firstLength)
        let bytes = take()
        return (character, bytes[..<length], bytes[length...])
    }

    private var step: Step {
        let rest = text.dropFirst()
        switch text[0] {
        case Self.backslash: return Self.backslashStep(text.drop { $0 == Self.backslash }, length: text.count)
        case Self.percent: return Self.percentStep(rest)
        case Self.ampersand: return Self.referenceStep(rest)
        case Self.caret:
            guard let kind = rest.first else { return .incomplete }
            return kind == UInt8(ascii: "[") ? .decoded([0x1B]) : .plain
        default:
            guard let second = rest.first else { return .incomplete }
            return second == 0x9B || second == 0xA0 ? .decoded(Self.characters(UInt32(second))) : .plain
        }
    }

    private static func backslashStep(_ rest: ArraySlice<UInt8>, length: Int) -> Step {
        guard let kind = rest.first else { return length <= maxBackslashes ? .incomplete : .plain }
        switch kind {
        case UInt8(ascii: "/"), UInt8(ascii: "\""), UInt8(ascii: "'"): return .decoded([kind])
        // A shell continues a line so.
        case 0x0A, 0x0D: return .decoded([kind])
        case UInt8(ascii: "n"): return .decoded([0x0A])
        case UInt8(ascii: "r"): return .decoded([0x0D])
        case UInt8(ascii: "t"): return .decoded([0x09])
        case UInt8(ascii: "u"): return step(after: rest.dropFirst(), count: 4)
        case UInt8(ascii: "U"): return step(after: rest.dropFirst(), count: 8)
        // Python and JavaScript write control characters so.
        case UInt8(ascii: "x"): return step(after: rest.dropFirst(), count: 2)
        // Shells write ESC so.
        case UInt8(ascii: "e"), UInt8(ascii: "E"): return .decoded([0x1B])
        case UInt8(ascii: "0"):
            guard "033".utf8.starts(with: rest) else { return .plain }
            return rest.count == 3 ? .decoded([0x1B]) : .incomplete
        default: return .plain
        }
    }

    private static func percentStep(_ digits: ArraySlice<UInt8>) -> Step {
        guard digits.allSatisfy(\.isHexadecimal) else { return .plain }
        guard digits.count == 2 else { return .incomplete }
        return .decoded([digits.reduce(0) { $0 << 4 | ($1.hexadecimalValue ?? 0) }])
    }

    private static func referenceStep(_ rest: ArraySlice<UInt8>) -> Step {
        guard rest.first == UInt8(ascii: "#") else {
            guard rest.last == UInt8(ascii: ";") else {
                return references.contains { $0.name.starts(with: rest) } ? .incomplete : .plain
            }
            let reference = references.first { $0.name.elementsEqual(rest.dropLast()) }
            return reference.map { .decoded([$0.character]) } ?? .plain
        }
        var digits = rest.dropFirst()
        let isHexadecimal = digits.first.map { $0 | 0x20 } == UInt8(ascii: "x")
        if isHexadecimal { digits = digits.dropFirst() }
        let isComplete = digits.last == UInt8(ascii: ";")
        if isComplete { digits = digits.dropLast() }
        if digits.isEmpty { return isComplete ? .plain : .incomplete }
        let text = String(decoding: digits, as: UTF8.self)
        guard digits.allSatisfy(\.isHexadecimal), let value = UInt32(text, radix: isHexadecimal ? 16 : 10) else {
            return .plain
        }
        return isComplete ? .decoded(characters(value)) : .incomplete
    }

    private static func step(after digits: ArraySlice<UInt8>, count: Int) -> Step {
        var value: UInt32 = 0
        for digit in digits {
            guard let number = digit.hexadecimalValue else { return .plain }
            value = value << 4 | UInt32(number)
        }
        return digits.count == count ? .decoded(characters(value)) : .incomplete
    }

    /// Returns a character in UTF-8, CSI as `ESC [` and the no-break space as a space.
    private static func characters(_ value: UInt32) -> [UInt8] {
        switch value {
        case 0x9B: [0x1B, UInt8(ascii: "[")]
        case 0xA0: [0x20]
        // A surrogate is a part of a character that no token has.
        default: Array(String(Unicode.Scalar(value) ?? "\u{FFFD}").utf8)
        }
    }
}
