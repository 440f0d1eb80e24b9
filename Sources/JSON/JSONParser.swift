/// Reads one JSON text (RFC 8259) from bytes.
///
/// Strict where readers differ and a difference could be used: a name must not come twice, nothing may follow, nesting ends
/// at 128. A lone surrogate (section 8.2), which no Swift string can hold, becomes U+FFFD.
struct JSONParser: ~Copyable {
    private static let deepest = 128
    /// From so many members on, names are looked up by their hash.
    private static let many = 16

    private let bytes: UnsafeBufferPointer<UInt8>
    private var place = 0
    private var depth = 0

    init(_ bytes: UnsafeBufferPointer<UInt8>) { self.bytes = bytes }

    mutating func parse() throws(JSONError) -> JSON {
        let value = try value()
        skipSpace()
        guard place == bytes.count else { throw error(.unexpected) }
        return value
    }

    private mutating func value() throws(JSONError) -> JSON {
        skipSpace()
        switch try peek() {
        case UInt8(ascii: "{"): return .object(try nested { (parser) throws(JSONError) in try parser.object() })
        case UInt8(ascii: "["): return .array(try nested { (parser) throws(JSONError) in try parser.array() })
        case UInt8(ascii: "\""): return .string(try string())
        case UInt8(ascii: "t"): return try word("true", .bool(true))
        case UInt8(ascii: "f"): return try word("false", .bool(false))
        case UInt8(ascii: "n"): return try word("null", .null)
        default: return .number(try number())
        }
    }

    private mutating func nested<Value>(
        _ body: (inout JSONParser) throws(JSONError) -> Value
    ) throws(JSONError) -> Value {
        guard depth < Self.deepest else { throw error(.tooDeep) }
        depth += 1
        place += 1
        let value = try body(&self)
        depth -= 1
        return value
    }

    private mutating func object() throws(JSONError) -> JSONObject {
        var members: [JSONObject.Member] = []
        // In bytes: to a set of strings é is the same as e and its accent.
        var names: Set<[UInt8]> = []
        if try skips(UInt8(ascii: "}")) { return JSONObject(unique: []) }
        repeat {
            skipSpace()
            let start = place
            guard try peek() == UInt8(ascii: "\"") else { throw error(.unexpected) }
            let name = try string()
            let isNew: Bool
            if members.count < Self.many {
                isNew = !members.contains { $0.isCalled(name) }
            } else {
                if names.isEmpty { names = Set(members.map { Array($0.name.utf8) }) }
                isNew = names.insert(Array(name.utf8)).inserted
            }
            guard isNew else { throw JSONError(reason: .twice, offset: start) }
            try expect(UInt8(ascii: ":"))
            members.append(.init(name: name, value: try value()))
        } while try goesOn(until: UInt8(ascii: "}"))
        return JSONObject(unique: members)
    }

    private mutating func array() throws(JSONError) -> [JSON] {
        var elements: [JSON] = []
        if try skips(UInt8(ascii: "]")) { return elements }
        repeat { elements.append(try value()) } while try goesOn(until: UInt8(ascii: "]"))
        return elements
    }

    /// Section 6: `-`, no zero in front, a digit at least on either side of the point and behind the `e`.
    private mutating func number() throws(JSONError) -> JSONNumber {
        let start = place
        if next() == UInt8(ascii: "-") { place += 1 }
        if next() == UInt8(ascii: "0") { place += 1 } else { try digits() }
        if next() == UInt8(ascii: ".") {
            place += 1
            try digits()
        }
        if let sign = next(), sign | 0x20 == UInt8(ascii: "e") {
            place += 1
            if let sign = next(), sign == UInt8(ascii: "+") || sign == UInt8(ascii: "-") { place += 1 }
            try digits()
        }
        return JSONNumber(grammatical: String(decoding: bytes[start..<place], as: UTF8.self))
    }

    private mutating func digits() throws(JSONError) {
        let start = place
        while let byte = next(), byte >= UInt8(ascii: "0"), byte <= UInt8(ascii: "9") { place += 1 }
        guard place > start else { throw error(place == bytes.count ? .unfinished : .unexpected) }
    }

    private mutating func word(_ word: StaticString, _ value: JSON) throws(JSONError) -> JSON {
        for index in 0..<word.utf8CodeUnitCount {
            guard try peek() == word.utf8Start[index] else { throw error(.unexpected) }
            place += 1
        }
        return value
    }

    // MARK: Strings

    private mutating func string() throws(JSONError) -> String {
        place += 1
        let start = place
        var text = try run()
        if try peek() == UInt8(ascii: "\"") {
            place += 1
            return text
        }
        while try peek() == UInt8(ascii: "\\") {
            place += 1
            text.unicodeScalars.append(try escaped())
            text += try run()
        }
        guard try peek() == UInt8(ascii: "\"") else { throw JSONError(reason: .unexpected, offset: start) }
        place += 1
        return text
    }

    /// What needs no care: up to the next quote or backslash.
    private mutating func run() throws(JSONError) -> String {
        let start = place
        while let byte = next(), byte != UInt8(ascii: "\""), byte != UInt8(ascii: "\\") {
            guard byte >= 0x20 else { throw error(.unexpected) }
            place += 1
        }
        guard place < bytes.count else { throw error(.unfinished) }
        guard let text = String(validating: bytes[start..<place], as: UTF8.self) else {
            throw JSONError(reason: .notText, offset: start)
        }
        return text
    }

    private mutating func escaped() throws(JSONError) -> Unicode.Scalar {
        let byte = try peek()
        place += 1
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): return Unicode.Scalar(byte)
        case UInt8(ascii: "b"): return "\u{8}"
        case UInt8(ascii: "f"): return "\u{C}"
        case UInt8(ascii: "n"): return "\n"
        case UInt8(ascii: "r"): return "\r"
        case UInt8(ascii: "t"): return "\t"
        case UInt8(ascii: "u"): return try escapedUnit()
        default:
            place -= 1
            throw error(.unexpected)
        }
    }

    private mutating func escapedUnit() throws(JSONError) -> Unicode.Scalar {
        let unit = try hexadecimal()
        guard UTF16.isLeadSurrogate(unit), next() == UInt8(ascii: "\\"), next(1) == UInt8(ascii: "u") else {
            return Unicode.Scalar(unit) ?? "\u{FFFD}"
        }
        let after = place
        place += 2
        let second = try hexadecimal()
        guard UTF16.isTrailSurrogate(second) else {
            place = after
            return "\u{FFFD}"
        }
        let value = 0x1_0000 + (UInt32(unit) - 0xD800) << 10 + (UInt32(second) - 0xDC00)
        return Unicode.Scalar(value) ?? "\u{FFFD}"
    }

    private mutating func hexadecimal() throws(JSONError) -> UInt16 {
        guard place + 4 <= bytes.count else { throw error(.unfinished) }
        var unit: UInt16 = 0
        for _ in 0..<4 {
            guard let digit = Character(Unicode.Scalar(bytes[place])).hexDigitValue, bytes[place] < 0x80 else {
                throw error(.unexpected)
            }
            unit = unit << 4 | UInt16(digit)
            place += 1
        }
        return unit
    }

    // MARK: Steps

    private mutating func skipSpace() {
        while let byte = next(), byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 { place += 1 }
    }

    private mutating func skips(_ byte: UInt8) throws(JSONError) -> Bool {
        skipSpace()
        guard try peek() == byte else { return false }
        place += 1
        return true
    }

    private mutating func expect(_ byte: UInt8) throws(JSONError) {
        guard try skips(byte) else { throw error(.unexpected) }
    }

    private mutating func goesOn(until end: UInt8) throws(JSONError) -> Bool {
        if try skips(UInt8(ascii: ",")) { return true }
        try expect(end)
        return false
    }

    private func next(_ ahead: Int = 0) -> UInt8? { place + ahead < bytes.count ? bytes[place + ahead] : nil }

    private func peek() throws(JSONError) -> UInt8 {
        guard let byte = next() else { throw error(.unfinished) }
        return byte
    }

    private func error(_ reason: JSONError.Reason) -> JSONError { JSONError(reason: reason, offset: place) }
}
