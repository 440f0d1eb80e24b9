/// Parses one JSON text (RFC 8259) from bytes.
///
/// Strict where parsers disagree, because differences can be exploited: duplicate names and trailing data are errors. With
/// `isRepairing` it repairs what `JSONRepair` lists, in the same pass, so each text has one reading. A lone surrogate
/// (section 8.2) becomes U+FFFD, because Swift strings cannot contain surrogates. A byte order mark is skipped (8.1).
struct JSONParser: ~Copyable {
    private static let byteOrderMark: [UInt8] = [0xEF, 0xBB, 0xBF]
    /// The number of members from which names are looked up by hash.
    private static let hashLookupThreshold = 16

    private let bytes: UnsafeBufferPointer<UInt8>
    private let maxDepth: Int
    private let isRepairing: Bool
    private var offset = 0
    private var depth = 0
    /// The repairs so far, in the order of the text.
    private(set) var repairs = JSONRepairs()

    init(_ bytes: UnsafeBufferPointer<UInt8>, maxDepth: Int, isRepairing: Bool = false) {
        self.bytes = bytes
        self.maxDepth = maxDepth
        self.isRepairing = isRepairing
    }

    mutating func parse() throws(JSONError) -> JSON {
        if bytes.starts(with: Self.byteOrderMark) {
            offset = Self.byteOrderMark.count
            repairs.record(.byteOrderMark)
        }
        let value = try value()
        skipSpace()
        if isRepairing { skipTrailingZeros() }
        guard offset == bytes.count else { throw error(.unexpected) }
        return value
    }

    private mutating func value() throws(JSONError) -> JSON {
        skipSpace()
        switch try peek() {
        case UInt8(ascii: "{"): return try isTooDeep() ? .null : .object(object())
        case UInt8(ascii: "["): return try isTooDeep() ? .null : .array(array())
        case UInt8(ascii: "\""): return .string(try string())
        default: return try isRepairing && depth > 0 ? repairedScalar() : scalar()
        }
    }

    /// Parses a value without quotes or brackets.
    private mutating func scalar() throws(JSONError) -> JSON {
        switch try peek() {
        case UInt8(ascii: "t"): try literal("true", value: .bool(true))
        case UInt8(ascii: "f"): try literal("false", value: .bool(false))
        case UInt8(ascii: "n"): try literal("null", value: .null)
        default: .number(try number())
        }
    }

    /// Returns whether the array or object here exceeds the depth. Then skips it if repairs are allowed.
    private mutating func isTooDeep() throws(JSONError) -> Bool {
        if depth < maxDepth { return false }
        guard isRepairing else { throw error(.tooDeep) }
        try skipNested()
        repairs.record(.tooDeep)
        return true
    }

    private mutating func object() throws(JSONError) -> JSONObject {
        depth += 1
        offset += 1
        defer { depth -= 1 }
        var members: [JSONObject.Member] = []
        // Bytes, because a dictionary of strings treats é and e with an accent as equal.
        var indexes: [[UInt8]: Int] = [:]
        if try skip(if: UInt8(ascii: "}")) { return JSONObject(unique: []) }
        repeat {
            skipSpace()
            let start = offset
            guard try peek() == UInt8(ascii: "\"") else { throw error(.unexpected) }
            let name = try string()
            let earlier: Int?
            if members.count < Self.hashLookupThreshold {
                earlier = members.firstIndex { $0.isCalled(name) }
            } else {
                if indexes.isEmpty {
                    for (index, member) in members.enumerated() { indexes[Array(member.name.utf8)] = index }
                }
                earlier = indexes.updateValue(members.count, forKey: Array(name.utf8))
            }
            try expect(UInt8(ascii: ":"))
            let known = repairs.count
            let value = try value()
            if repairs.count != known { repairs.prepend(name, from: known) }
            if let earlier {
                guard isRepairing else { throw JSONError(reason: .duplicateName, offset: start) }
                repairs.record(.duplicateName)
                members[earlier].value = value
                if !indexes.isEmpty { indexes[Array(name.utf8)] = earlier }
            } else {
                members.append(.init(name: name, value: value))
            }
        } while try hasNextElement(until: UInt8(ascii: "}"))
        return JSONObject(unique: members)
    }

    private mutating func array() throws(JSONError) -> [JSON] {
        depth += 1
        offset += 1
        defer { depth -= 1 }
        var elements: [JSON] = []
        if try skip(if: UInt8(ascii: "]")) { return elements }
        repeat {
            let known = repairs.count
            elements.append(try value())
            if repairs.count != known { repairs.prepend("\(elements.count - 1)", from: known) }
        } while try hasNextElement(until: UInt8(ascii: "]"))
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
            if byte < 0x20 { try repair(.syntax, or: .unexpected) }
            offset += 1
        }
        guard offset < bytes.count else { throw error(.unexpectedEnd) }
        if let text = String(validating: bytes[start..<offset], as: UTF8.self) { return text }
        guard isRepairing else { throw JSONError(reason: .invalidUTF8, offset: start) }
        repairs.record(.invalidUTF8)
        return String(decoding: bytes[start..<offset], as: UTF8.self)
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
        case UInt8(ascii: "u"):
            let start = offset
            do throws(JSONError) { return try escapedUnit() } catch {
                guard isRepairing else { throw error }
                offset = start
            }
        default: break
        }
        // The backslash stays, so nothing of a path such as C:\Users is lost.
        offset -= 1
        try repair(.syntax, or: .unexpected)
        return "\\"
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
        guard try skip(if: UInt8(ascii: ",")) else {
            try expect(end)
            return false
        }
        guard isRepairing, try skip(if: end) else { return true }
        repairs.record(.syntax)
        return false
    }

    private func next(_ ahead: Int = 0) -> UInt8? { offset + ahead < bytes.count ? bytes[offset + ahead] : nil }

    private func peek() throws(JSONError) -> UInt8 {
        guard let byte = next() else { throw error(.unexpectedEnd) }
        return byte
    }

    private func error(_ reason: JSONError.Reason) -> JSONError { JSONError(reason: reason, offset: offset) }
}

/// The repairs that need more than another branch.
extension JSONParser {
    /// Records a repair, or throws without repairs.
    private mutating func repair(_ kind: JSONRepair.Kind, or reason: JSONError.Reason) throws(JSONError) {
        guard isRepairing else { throw error(reason) }
        repairs.record(kind)
    }

    /// Parses a value without quotes or brackets. Another word, such as `NaN`, becomes null.
    private mutating func repairedScalar() throws(JSONError) -> JSON {
        let start = offset
        var failure = error(.unexpected)
        do throws(JSONError) {
            let value = try scalar()
            if !isInWord { return value }
        } catch { failure = error }
        offset = start
        while isInWord { offset += 1 }
        guard offset > start else { throw failure }
        // A part of a word could be a part of a token that is to be removed.
        let word = bytes[start..<offset]
        repairs.record(
            .notJSON(word.count <= 32 ? String(decoding: word, as: UTF8.self) : "a word of \(word.count) bytes")
        )
        return .null
    }

    /// Indicates whether the next byte can be part of a word such as `-nan(ind)`: visible ASCII without JSON's own signs.
    private var isInWord: Bool {
        guard let byte = next() else { return false }
        return switch byte {
        case 0...0x20, 0x7F..., UInt8(ascii: ","), UInt8(ascii: ":"), UInt8(ascii: "["), UInt8(ascii: "]"),
            UInt8(ascii: "{"), UInt8(ascii: "}"), UInt8(ascii: "\""), UInt8(ascii: "\\"):
            false
        default: true
        }
    }

    /// Skips an array or object. Only the nesting and the ends of strings are read.
    private mutating func skipNested() throws(JSONError) {
        var open = 0
        repeat {
            switch try peek() {
            case UInt8(ascii: "{"), UInt8(ascii: "["): open += 1
            case UInt8(ascii: "}"), UInt8(ascii: "]"): open -= 1
            case UInt8(ascii: "\""):
                offset += 1
                while case let byte = try peek(), byte != UInt8(ascii: "\"") {
                    offset += 1
                    if byte == UInt8(ascii: "\\"), next() != nil { offset += 1 }
                }
            default: break
            }
            offset += 1
        } while open > 0
    }

    /// Skips the zero bytes that C programs send after the text.
    private mutating func skipTrailingZeros() {
        guard next() == 0, bytes[offset...].allSatisfy({ $0 == 0 }) else { return }
        offset = bytes.count
        repairs.record(.syntax)
    }
}
