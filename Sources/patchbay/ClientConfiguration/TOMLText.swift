import Model

/// The statements of a TOML text (TOML 1.0) and their places. Values are not decoded.
struct TOMLText: ConfigurationText {
    typealias SyntaxError = ConfigurationSyntaxError

    /// A header `[a.b]`, or a pair `key = value`.
    struct Statement {
        /// The whole path, with that of the header above a pair.
        let path: [String]
        /// The bytes of the statement, without the comment behind it.
        let range: Range<Int>
        /// The bytes of the value; nil for a header.
        let value: Range<Int>?
    }

    let bytes: [UInt8]
    private(set) var statements: [Statement] = []
    /// The places of the comments.
    private(set) var comments: [Range<Int>] = []
    /// The paths of the names in inline tables, with the places of the names.
    private(set) var inlineNames: [(path: [String], offset: Int)] = []
    /// The number of the elements of each array of tables.
    private var elements: [[String]: Int] = [:]
    private var paths: Set<[String]> = []
    private var offset = 0

    private static let maxDepth = 200

    init(_ bytes: [UInt8]) throws(SyntaxError) {
        self.bytes = bytes
        if bytes.starts(with: [0xEF, 0xBB, 0xBF]) { offset = 3 }
        for index in bytes.indices where bytes[index] == 13 && bytes[(index + 1)...].first != 10 {
            offset = index
            throw error("a carriage return has no line feed behind it")
        }
        var table: [String] = []
        skipBlank()
        while peek() != nil {
            let start = offset
            if peek() == UInt8(ascii: "[") {
                table = try header()
                try append(Statement(path: table, range: start..<offset, value: nil))
            } else {
                let path = table + (try keys())
                guard peek() == UInt8(ascii: "=") else { throw error("a key has no value") }
                offset += 1
                skipSpace()
                let value = offset
                try skipValue(of: path, depth: 0)
                try append(Statement(path: path, range: start..<offset, value: value..<offset))
            }
            skipSpace()
            skipComment()
            guard peek() == nil || Self.isLineEnd(peek()) else { throw error("there is text behind a statement") }
            skipBlank()
        }
    }

    func line(at offset: Int) -> Int { bytes[..<min(offset, bytes.count)].count { $0 == UInt8(ascii: "\n") } + 1 }

    private func error(_ reason: String) -> SyntaxError { SyntaxError(line: line(at: offset), reason: reason) }

    private func peek() -> UInt8? { offset < bytes.count ? bytes[offset] : nil }

    private func isNext(_ text: StaticString) -> Bool {
        bytes[offset...].starts(with: UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
    }

    private static func isLineEnd(_ byte: UInt8?) -> Bool { byte == UInt8(ascii: "\n") || byte == UInt8(ascii: "\r") }

    private mutating func skipSpace() {
        while let byte = peek(), byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") { offset += 1 }
    }

    private mutating func skipComment() {
        guard peek() == UInt8(ascii: "#") else { return }
        let start = offset
        while !Self.isLineEnd(peek()), peek() != nil { offset += 1 }
        comments.append(start..<offset)
    }

    /// Skips spaces, line ends and comments.
    private mutating func skipBlank() {
        while true {
            skipSpace()
            skipComment()
            guard Self.isLineEnd(peek()) else { return }
            offset += 1
        }
    }

    private mutating func append(_ statement: Statement) throws(SyntaxError) {
        guard paths.insert(statement.path).inserted else {
            throw SyntaxError(
                line: line(at: statement.range.lowerBound),
                reason: "\(statement.path.joined(separator: ".")) is there twice"
            )
        }
        statements.append(statement)
    }

    /// Scans `[a.b]` or `[[a.b]]`. The path has the element behind the name of each array of tables.
    private mutating func header() throws(SyntaxError) -> [String] {
        let isArray = isNext("[[")
        offset += isArray ? 2 : 1
        let path = try keys()
        guard isNext(isArray ? "]]" : "]") else { throw error("a header has no closing bracket") }
        offset += isArray ? 2 : 1
        var resolved: [String] = []
        for (index, name) in path.enumerated() {
            resolved.append(name)
            if isArray, index == path.count - 1 { elements[resolved, default: 0] += 1 }
            if let number = elements[resolved] { resolved.append("[\(number)]") }
        }
        return resolved
    }

    /// Scans a dotted key and the space behind it.
    private mutating func keys() throws(SyntaxError) -> [String] {
        var keys: [String] = []
        repeat {
            if !keys.isEmpty { offset += 1 }
            skipSpace()
            let start = offset
            if peek() == UInt8(ascii: "\"") || peek() == UInt8(ascii: "'") {
                try skipString()
                keys.append(try name(in: start..<offset))
            } else {
                while let byte = peek(), !Self.endOfKey.contains(byte) { offset += 1 }
                guard offset > start else { throw error("a key is missing") }
                keys.append(String(decoding: bytes[start..<offset], as: UTF8.self))
            }
            skipSpace()
        } while peek() == UInt8(ascii: ".")
        return keys
    }

    /// Returns the name in quotes. The escapes of TOML, except `\U` and `\e`, are those of JSON.
    private func name(in range: Range<Int>) throws(SyntaxError) -> String {
        let content = bytes[range].dropFirst().dropLast()
        guard bytes[range.lowerBound] == UInt8(ascii: "\""), content.contains(UInt8(ascii: "\\")) else {
            return String(decoding: content, as: UTF8.self)
        }
        guard let name = (try? JSON(parsing: bytes[range]))?.string else {
            throw error("a key has an escape that is not supported here")
        }
        return name
    }

    private static let endOfKey = Set(" \t\r\n.=]#\"'[{},".utf8)
    private static let endOfValue = Set("\r\n,]}#".utf8)

    private mutating func skipValue(of path: [String], depth: Int) throws(SyntaxError) {
        guard depth < Self.maxDepth else { throw error("the values are nested too deeply") }
        switch peek() {
        case UInt8(ascii: "\""), UInt8(ascii: "'"): try skipString()
        case UInt8(ascii: "["): try skipList(of: path + ["[]"], until: UInt8(ascii: "]"), depth: depth)
        case UInt8(ascii: "{"): try skipList(of: path, until: UInt8(ascii: "}"), depth: depth)
        default:
            let start = offset
            while let byte = peek(), !Self.endOfValue.contains(byte) { offset += 1 }
            // A date may have a space inside, so the spaces at the end are excluded here.
            while offset > start, [9, 32].contains(bytes[offset - 1]) { offset -= 1 }
            guard offset > start else { throw error("a value is missing") }
        }
    }

    /// Skips a list or an inline table.
    private mutating func skipList(of path: [String], until close: UInt8, depth: Int) throws(SyntaxError) {
        offset += 1
        skipBlank()
        while peek() != close {
            var name = path
            if close == UInt8(ascii: "}") {
                let start = offset
                name += try keys()
                inlineNames.append((name, start))
                guard peek() == UInt8(ascii: "=") else { throw error("a key has no value") }
                offset += 1
                skipBlank()
            }
            try skipValue(of: name, depth: depth + 1)
            skipBlank()
            if peek() == UInt8(ascii: ",") {
                offset += 1
                skipBlank()
            } else if peek() != close {
                throw error("a comma or a closing bracket is missing")
            }
        }
        offset += 1
    }

    /// Skips a text in one or three quotes of either kind.
    private mutating func skipString() throws(SyntaxError) {
        let quote = bytes[offset]
        let hasEscapes = quote == UInt8(ascii: "\"")
        let isLong = isNext("\"\"\"") || isNext("'''")
        let start = self
        offset += isLong ? 3 : 1
        while let byte = peek(), isLong || byte != UInt8(ascii: "\n") {
            if byte == quote, !isLong || bytes[offset...].starts(with: [quote, quote, quote]) {
                offset += isLong ? 3 : 1
                // Up to two quotes may be the end of a long text.
                while isLong, peek() == quote { offset += 1 }
                return
            }
            offset += hasEscapes && byte == UInt8(ascii: "\\") ? 2 : 1
        }
        throw start.error("a text has no closing quote")
    }
}
