/// Decodes the escapes of JSON strings (RFC 8259, section 7) in a log.
///
/// A text may have been escaped several times, so an escape begins with any number of backslashes up to 16. NUL bytes in an
/// escape are ignored, as they are in UTF-16 text.
struct EscapeDecoder {
    enum Step: Equatable {
        /// The bytes may be the beginning of an escape.
        case incomplete
        /// The bytes are an escape of this character in UTF-8.
        case decoded([UInt8])
        /// The bytes are no escape: the first one stands for itself.
        case plain
    }

    private static let maxBackslashes = 16
    private static let maxLength = 64
    private static let backslash = UInt8(ascii: "\\")

    /// The bytes of the stream since the first backslash.
    private var bytes: [UInt8] = []
    /// The same bytes without NUL.
    private var text: [UInt8] = []

    /// True between two escapes.
    var isIdle: Bool { bytes.isEmpty }

    /// Reads a byte of an escape, which begins with a backslash.
    mutating func read(_ byte: UInt8) -> Step {
        bytes.append(byte)
        guard bytes.count < Self.maxLength else { return .plain }
        if byte == 0 { return .incomplete }
        text.append(byte)
        let rest = text.drop { $0 == Self.backslash }
        guard let kind = rest.first else { return text.count <= Self.maxBackslashes ? .incomplete : .plain }
        switch kind {
        case UInt8(ascii: "/"), UInt8(ascii: "\""), UInt8(ascii: "'"): return .decoded([kind])
        case UInt8(ascii: "n"): return .decoded([0x0A])
        case UInt8(ascii: "r"): return .decoded([0x0D])
        case UInt8(ascii: "t"): return .decoded([0x09])
        case UInt8(ascii: "u"): return Self.step(after: rest.dropFirst(), count: 4)
        // Python and JavaScript write control characters so.
        case UInt8(ascii: "x"): return Self.step(after: rest.dropFirst(), count: 2)
        default: return .plain
        }
    }

    /// Ends the escape and returns its bytes.
    mutating func take() -> [UInt8] {
        defer { (bytes, text) = ([], []) }
        return bytes
    }

    private static func step(after digits: ArraySlice<UInt8>, count: Int) -> Step {
        var value: UInt32 = 0
        for digit in digits {
            guard let number = digit.hexadecimalValue else { return .plain }
            value = value << 4 | UInt32(number)
        }
        guard digits.count == count else { return .incomplete }
        // A surrogate is a part of a character that no token has.
        return .decoded(Array(String(Unicode.Scalar(value) ?? "\u{FFFD}").utf8))
    }
}
