import Glibc

/// Finds the members of the outermost object of a JSON text.
///
/// The scanner pairs brackets and quotes, and does not validate the values between them. It is much faster than a
/// parser for long strings.
struct JSONScanner {
    typealias Member = (name: Range<Int>, value: Range<Int>)

    /// The maximum number of members. An app sends three, and the list needs memory for each.
    private static let memberLimit = 64

    private let bytes: UnsafeBufferPointer<UInt8>
    private var offset = 0

    init(_ bytes: UnsafeBufferPointer<UInt8>) { self.bytes = bytes }

    /// Returns the ranges of the names without quotes, and of the values. Returns nil if the text is not one whole
    /// object with at most 64 members.
    mutating func members() -> [Member]? {
        var members: [Member] = []
        guard skip(UInt8(ascii: "{")) else { return nil }
        if !skip(UInt8(ascii: "}")) {
            repeat {
                skipSpace()
                guard let name = string(), skip(UInt8(ascii: ":")) else { return nil }
                skipSpace()
                guard let value = value(), members.count < Self.memberLimit else { return nil }
                members.append((name.dropFirst().dropLast(), value))
            } while skip(UInt8(ascii: ","))
            guard skip(UInt8(ascii: "}")) else { return nil }
        }
        skipSpace()
        return offset == bytes.count ? members : nil
    }

    private mutating func value() -> Range<Int>? {
        let start = offset
        switch current {
        case UInt8(ascii: "\""): return string()
        case UInt8(ascii: "{"), UInt8(ascii: "["): return skipNested() ? start..<offset : nil
        default:
            while let byte = current, byte != UInt8(ascii: ","), byte != UInt8(ascii: "}"), !Self.isSpace(byte) {
                offset += 1
            }
            return offset > start ? start..<offset : nil
        }
    }

    /// Skips an array or object with everything inside.
    private mutating func skipNested() -> Bool {
        var depth = 0
        while let byte = current {
            switch byte {
            case UInt8(ascii: "\""):
                guard string() != nil else { return false }
                continue
            case UInt8(ascii: "{"), UInt8(ascii: "["): depth += 1
            case UInt8(ascii: "}"), UInt8(ascii: "]"): depth -= 1
            default: break
            }
            offset += 1
            if depth == 0 { return true }
        }
        return false
    }

    /// Skips a string, and returns its range with the quotes.
    private mutating func string() -> Range<Int>? {
        guard current == UInt8(ascii: "\""), let base = bytes.baseAddress else { return nil }
        let start = offset
        offset += 1
        while let quote = memchr(base + offset, CInt(UInt8(ascii: "\"")), bytes.count - offset) {
            let position = UnsafeRawPointer(quote) - UnsafeRawPointer(base)
            offset = position + 1
            // An odd number of backslashes before a quote escapes it.
            var first = position
            while first > start + 1, bytes[first - 1] == UInt8(ascii: "\\") { first -= 1 }
            if (position - first).isMultiple(of: 2) { return start..<offset }
        }
        return nil
    }

    private mutating func skip(_ byte: UInt8) -> Bool {
        skipSpace()
        guard current == byte else { return false }
        offset += 1
        return true
    }

    private mutating func skipSpace() {
        while let byte = current, Self.isSpace(byte) { offset += 1 }
    }

    private var current: UInt8? { offset < bytes.count ? bytes[offset] : nil }

    private static func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 }
}
