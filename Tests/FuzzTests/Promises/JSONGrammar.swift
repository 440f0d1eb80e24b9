/// A reference checker for the grammar of RFC 8259, without a tree and without recursion.
struct JSONGrammar {
    private enum Expected {
        case value
        /// The position after `[`.
        case valueOrEnd
        case name
        /// The position after `{`.
        case nameOrEnd
        case colon
        case commaOrEnd
        case nothing
    }

    private(set) var isJSON = false
    private(set) var depth = 0
    /// True if an object repeats a name in the same bytes, up to the first invalid byte.
    private(set) var hasDuplicateNames = false
    private(set) var hasEscapedNames = false

    private let bytes: [UInt8]
    private var place = 0
    /// The open containers: the names so far of an object, nil for an array.
    private var open: [Set<[UInt8]>?] = []
    private var expected = Expected.value

    init(_ bytes: [UInt8]) {
        self.bytes = bytes
        skipSpace()
        while place < bytes.count {
            guard step() else { return }
            skipSpace()
        }
        if case .nothing = expected { isJSON = true }
    }

    private mutating func step() -> Bool {
        let byte = bytes[place]
        switch (expected, byte) {
        case (.value, UInt8(ascii: "[")), (.valueOrEnd, UInt8(ascii: "[")), (.value, UInt8(ascii: "{")),
            (.valueOrEnd, UInt8(ascii: "{")):
            place += 1
            open.append(byte == UInt8(ascii: "{") ? [] : nil)
            depth = max(depth, open.count)
            expected = byte == UInt8(ascii: "{") ? .nameOrEnd : .valueOrEnd
            return true
        case (.valueOrEnd, UInt8(ascii: "]")), (.nameOrEnd, UInt8(ascii: "}")), (.commaOrEnd, UInt8(ascii: "]")),
            (.commaOrEnd, UInt8(ascii: "}")):
            guard let last = open.last, (last != nil) == (byte == UInt8(ascii: "}")) else { return false }
            place += 1
            open.removeLast()
            expected = open.isEmpty ? .nothing : .commaOrEnd
            return true
        case (.commaOrEnd, UInt8(ascii: ",")):
            place += 1
            expected = open.last == .some(nil) ? .value : .name
            return true
        case (.colon, UInt8(ascii: ":")):
            place += 1
            expected = .value
            return true
        case (.name, UInt8(ascii: "\"")), (.nameOrEnd, UInt8(ascii: "\"")):
            let start = place
            guard string() else { return false }
            note(Array(bytes[start..<place]))
            expected = .colon
            return true
        case (.value, _), (.valueOrEnd, _):
            guard scalar() else { return false }
            expected = open.isEmpty ? .nothing : .commaOrEnd
            return true
        default: return false
        }
    }

    private mutating func note(_ name: [UInt8]) {
        if name.contains(UInt8(ascii: "\\")) { hasEscapedNames = true }
        guard let index = open.indices.last, let names = open[index] else { return }
        if names.contains(name) { hasDuplicateNames = true }
        open[index] = names.union([name])
    }

    private mutating func scalar() -> Bool {
        if bytes[place] == UInt8(ascii: "\"") { return string() }
        for word in ["true", "false", "null"] where bytes[place...].starts(with: word.utf8) {
            place += word.utf8.count
            return true
        }
        return number()
    }

    private mutating func number() -> Bool {
        if at("-") { place += 1 }
        let isZero = at("0")
        let whole = digits()
        guard whole == 1 || whole > 1 && !isZero else { return false }
        if at(".") {
            place += 1
            guard digits() > 0 else { return false }
        }
        if at("e") || at("E") {
            place += 1
            if at("+") || at("-") { place += 1 }
            guard digits() > 0 else { return false }
        }
        return true
    }

    private mutating func digits() -> Int {
        let start = place
        while place < bytes.count, (0x30...0x39).contains(bytes[place]) { place += 1 }
        return place - start
    }

    private mutating func string() -> Bool {
        let start = place + 1
        place = start
        while place < bytes.count, bytes[place] != UInt8(ascii: "\"") {
            guard bytes[place] >= 0x20 else { return false }
            place += bytes[place] == UInt8(ascii: "\\") ? 2 : 1
        }
        guard place < bytes.count, String(validating: bytes[start..<place], as: UTF8.self) != nil else { return false }
        place += 1
        return isEscapedWell(bytes[start..<(place - 1)])
    }

    private func isEscapedWell(_ text: ArraySlice<UInt8>) -> Bool {
        var rest = text
        while let start = rest.firstIndex(of: UInt8(ascii: "\\")) {
            rest = rest[start...].dropFirst()
            guard let letter = rest.popFirst() else { return false }
            if letter == UInt8(ascii: "u") {
                let digits = rest.prefix(4)
                let isHex = digits.allSatisfy { (0x30...0x39).contains($0) || (0x61...0x66).contains($0 | 0x20) }
                guard digits.count == 4, isHex else { return false }
                rest = rest.dropFirst(4)
            } else {
                guard Array("\"\\/bfnrt".utf8).contains(letter) else { return false }
            }
        }
        return true
    }

    private func at(_ sign: Unicode.Scalar) -> Bool { place < bytes.count && bytes[place] == UInt8(ascii: sign) }

    private mutating func skipSpace() {
        while place < bytes.count, [0x20, 0x09, 0x0A, 0x0D].contains(bytes[place]) { place += 1 }
    }
}
