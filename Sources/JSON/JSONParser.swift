/// Parses one JSON text (RFC 8259) from bytes.
///
/// Strict where parsers disagree, because differences can be exploited. Duplicate names and trailing data are errors,
/// and the maximum depth is 128. A lone surrogate (section 8.2) becomes U+FFFD, because Swift strings cannot contain
/// surrogates.
struct JSONParser: ~Copyable {
    private static let maxDepth = 128
    /// The number of members from which names are looked up by hash.
    private static let hashLookupThreshold = 16

    private let bytes: UnsafeBufferPointer<UInt8>
    private var offset = 0
    private var depth = 0

    init(_ bytes: UnsafeBufferPointer<UInt8>) { self.bytes = bytes }

    mutating func parse() throws(JSONError) -> JSON {
        let value = try value()
        skipSpace()
        guard offset == bytes.count else { throw error(.unexpected) }
        return value
    }

    private mutating func value() throws(JSONError) -> JSON {
        skipSpace()
        switch try peek() {
        case UInt8(ascii: "{"): return .object(try nested { (parser) throws(JSONError) in try parser.object() })
        case UInt8(ascii: "["): return .array(try nested { (parser) throws(JSONError) in try parser.array() })
        case UInt8(ascii: "\""): return .string(try string())
        case UInt8(ascii: "t"): return try literal("true", value: .bool(true))
        case UInt8(ascii: "f"): return try literal("false", value: .bool(false))
        case UInt8(ascii: "n"): return try literal("null", value: .null)
        default: return .number(try number())
        }
    }

    private mutating func nested<Value>(
        _ body: (inout JSONParser) throws(JSONError) -> Value
    ) throws(JSONError) -> Value {
        guard depth < Self.maxDepth else { throw error(.tooDeep) }
        depth += 1
        offset += 1
        let value = try body(&self)
        depth -= 1
        return value
    }

    private mutating func object() throws(JSONError) -> JSONObject {
        var members: [JSONObject.Member] = []
        // Bytes, because a set of strings treats é and e with an accent as equal.
        var names: Set<[UInt8]> = []
        if try skip(if: UInt8(ascii: "}")) { return JSONObject(unique: []) }
        repeat {
            skipSpace()
            let start = offset
            guard try peek() == UInt8(ascii: "\"") else { throw error(.unexpected) }
            let name = try string()
            let isNew: Bool
            if members.count < Self.hashLookupThreshold {
                isNew = !members.contains { $0.isCalled(name) }
            } else {
                if names.isEmpty { names = Set(members.map { Array($0.name.utf8) }) }
                isNew = names.insert(Array(name.utf8)).inserted
            }
            guard isNew else { throw JSONError(reason: .duplicateName, offset: start) }
            try expect(UInt8(ascii: ":"))
            members.append(.init(name: name, value: try value()))
        } while try hasNextElement(until: UInt8(ascii: "}"))
        return JSONObject(unique: members)
    }

    private mutating func array() throws(JSONError) -> [JSON] {
        var elements: [JSON] = []
        if try skip(if: UInt8(ascii: "]")) { return elements }
        repeat { elements.append(try value()) } while try hasNextElement(until: UInt8(ascii: "]"))
        return elements
    }

    /// Parses a number (section 6): an optional `-`, no leading zero, and at least one digit before and after the point
    /// and after the `e`.
    private mutating func number() throws(JSONError) -> JSONNumber {
        let start = offset
        if next() == UInt8(ascii: "-") { offset += 1 }
        if next() == UInt8(ascii: "0") { offset += 1 } else { try digits() }
        if next() == UInt8(ascii: ".") {
            offset += 1
            try digits()
        }
        if let sign = next(), sign | 0x20 == UInt8(ascii: "e") {
            offset += 1
            if let sign = next(), sign == UInt8(ascii: "+") || sign == UInt8(ascii: "-") { offset += 1 }
            try digits()
        }
        return JSONNumber(grammatical: String(decoding: bytes[start..<offset], as: UTF8.self))
    }

    private mutating func digits() throws(JSONError) {
        let start = offset
        while let byte = next(), byte >= UInt8(ascii: "0"), byte <= UInt8(ascii: "9") { offset += 1 }
        guard offset > start else { throw error(offset == bytes.count ? .unexpectedEnd : .unexpected) }
    }

    private mutating func literal(_ text: StaticString, value: JSON) throws(JSONError) -> JSON {
        for index in 0..<text.utf8CodeUnitCount {
            guard try peek() == text.utf8Start[index] else { throw error(.unexpected) }
            offset += 1
        }
        return value
    }

    // MARK: Strings

    private mutating func string() throws(JSONError) -> String {
        offset += 1
        let start = offset
        var text = try run()
        if try peek() == UInt8(ascii: "\"") {
            offset += 1
            return text
        }
        while try peek() == UInt8(ascii: "\\") {
            offset += 1
            text.unicodeScalars.append(try escaped())
            text += try run()
        }
        guard try peek() == UInt8(ascii: "\"") else { throw JSONError(reason: .unexpected, offset: start) }
        offset += 1
        return text
    }

    /// Returns the text up to the next quote or backslash.
    private mutating func run() throws(JSONError) -> String {
        let start = offset
        while let byte = next(), byte != UInt8(ascii: "\""), byte != UInt8(ascii: "\\") {
            guard byte >= 0x20 else { throw error(.unexpected) }
            offset += 1
        }
        guard offset < bytes.count else { throw error(.unexpectedEnd) }
        guard let text = String(validating: bytes[start..<offset], as: UTF8.self) else {
            throw JSONError(reason: .invalidUTF8, offset: start)
        }
        return text
    }

    private mutating func escaped() throws(JSONError) -> Unicode.Scalar {
        let byte = try peek()
        offset += 1
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): return Unicode.Scalar(byte)
        case UInt8(ascii: "b"): return "\u{8}"
        case UInt8(ascii: "f"): return "\u{C}"
        case UInt8(ascii: "n"): return "\n"
        case UInt8(ascii: "r"): return "\r"
        case UInt8(ascii: "t"): return "\t"
        case UInt8(ascii: "u"): return try escapedUnit()
        default:
            offset -= 1
            throw error(.unexpected)
        }
    }

    private mutating func escapedUnit() throws(JSONError) -> Unicode.Scalar {
        let unit = try hexadecimal()
        guard UTF16.isLeadSurrogate(unit), next() == UInt8(ascii: "\\"), next(1) == UInt8(ascii: "u") else {
            return Unicode.Scalar(unit) ?? "\u{FFFD}"
        }
        let after = offset
        offset += 2
        let second = try hexadecimal()
        guard UTF16.isTrailSurrogate(second) else {
            offset = after
            return "\u{FFFD}"
        }
        let value = 0x1_0000 + (UInt32(unit) - 0xD800) << 10 + (UInt32(second) - 0xDC00)
        return Unicode.Scalar(value) ?? "\u{FFFD}"
    }

    private mutating func hexadecimal() throws(JSONError) -> UInt16 {
        guard offset + 4 <= bytes.count else { throw error(.unexpectedEnd) }
        var unit: UInt16 = 0
        for _ in 0..<4 {
            guard let digit = Character(Unicode.Scalar(bytes[offset])).hexDigitValue, bytes[offset] < 0x80 else {
                throw error(.unexpected)
            }
            unit = unit << 4 | UInt16(digit)
            offset += 1
        }
        return unit
    }

    // MARK: Steps

    private mutating func skipSpace() {
        while let byte = next(), byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 { offset += 1 }
    }

    private mutating func skip(if byte: UInt8) throws(JSONError) -> Bool {
        skipSpace()
        guard try peek() == byte else { return false }
        offset += 1
        return true
    }

    private mutating func expect(_ byte: UInt8) throws(JSONError) {
        guard try skip(if: byte) else { throw error(.unexpected) }
    }

    private mutating func hasNextElement(until end: UInt8) throws(JSONError) -> Bool {
        if try skip(if: UInt8(ascii: ",")) { return true }
        try expect(end)
        return false
    }

    private func next(_ ahead: Int = 0) -> UInt8? { offset + ahead < bytes.count ? bytes[offset + ahead] : nil }

    private func peek() throws(JSONError) -> UInt8 {
        guard let byte = next() else { throw error(.unexpectedEnd) }
        return byte
    }

    private func error(_ reason: JSONError.Reason) -> JSONError { JSONError(reason: reason, offset: offset) }
}
