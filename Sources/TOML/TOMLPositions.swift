import Model

/// The positions of keys in a TOML document, which TOMLKit does not report.
///
/// The scanner is right for valid TOML, and ends for any text. It tells where keys and elements begin, and decodes no
/// value.
struct TOMLPositions {
    /// One step of a path in the document.
    enum Component: Hashable {
        case key(String)
        case index(Int)
    }

    private let bytes: [UInt8]
    private var offset = 0
    private var line = 1
    private var lineStart = 0
    private var positions: [[Component]: FilePosition] = [:]
    /// The first mistake that the scanner notices.
    ///
    /// TOMLKit 0.6 stops the process at some misplaced characters, so such text must not be passed to it. It also reports
    /// a list without its bracket at a later line.
    private(set) var mistake: (position: FilePosition, reason: String)?
    /// The number of tables in each `[[array]]`.
    private var tableCounts: [[Component]: Int] = [:]

    init(_ text: String) {
        bytes = Array(text.utf8)
        document()
    }

    /// Returns the position of a path; for an absent key, the position of the table that lacks it.
    subscript(path: [Component]) -> FilePosition {
        for count in (0...path.count).reversed() {
            if let position = positions[Array(path.prefix(count))] { return position }
        }
        return FilePosition(line: 1, column: 1)
    }

    // MARK: Statements

    private mutating func document() {
        var table: [Component] = []
        skipBlank()
        while let byte = byte() {
            let (start, before) = (position, offset)
            if byte == UInt8(ascii: "[") {
                let isArray = self.byte(1) == byte
                advance(isArray ? 2 : 1)
                table = resolved(keys(), isArray: isArray)
                record(table, at: start)
                advance(isArray ? 2 : 1)
            } else {
                pair(in: table)
            }
            skipBlank()
            if offset == before { return }
        }
    }

    /// Scans `key = value`.
    private mutating func pair(in table: [Component]) {
        let start = position
        let path = table + keys().map { .key($0) }
        record(path, at: start)
        if byte() == UInt8(ascii: "=") { advance() }
        skipSpace()
        value(at: path)
    }

    /// Scans a dotted key. The names in quotes keep their escapes.
    private mutating func keys() -> [String] {
        var keys: [String] = []
        repeat {
            if !keys.isEmpty { advance() }
            skipSpace()
            let start = offset
            if let quote = byte(), quote == UInt8(ascii: "\"") || quote == UInt8(ascii: "'") {
                string()
                keys.append(String(decoding: bytes[min(start + 1, offset)..<max(start + 1, offset - 1)], as: UTF8.self))
            } else {
                while let byte = byte(), Self.isBareKeyByte(byte) { advance() }
                if offset == start { note(misplaced) }
                keys.append(String(decoding: bytes[start..<offset], as: UTF8.self))
            }
            skipSpace()
        } while byte() == UInt8(ascii: ".")
        return keys
    }

    private static func isBareKeyByte(_ byte: UInt8) -> Bool { byte.isLetterOrDigit || "_-".utf8.contains(byte) }

    /// Returns the path of a header. The name of an `[[array]]` stands for its last table.
    private mutating func resolved(_ keys: [String], isArray: Bool) -> [Component] {
        var path: [Component] = []
        for (index, key) in keys.enumerated() {
            path.append(.key(key))
            if isArray, index == keys.count - 1 { tableCounts[path, default: 0] += 1 }
            if let count = tableCounts[path] { path.append(.index(count - 1)) }
        }
        return path
    }

    private mutating func record(_ path: [Component], at position: FilePosition) {
        for count in 1...max(path.count, 1) where positions[Array(path.prefix(count))] == nil {
            positions[Array(path.prefix(count))] = position
        }
    }

    // MARK: Values

    private mutating func value(at path: [Component]) {
        switch byte() {
        case UInt8(ascii: "\""), UInt8(ascii: "'"): string()
        case UInt8(ascii: "["):
            elements(until: UInt8(ascii: "]")) { scanner, index in
                let element = path + [.index(index)]
                scanner.record(element, at: scanner.position)
                scanner.value(at: element)
            }
        case UInt8(ascii: "{"): elements(until: UInt8(ascii: "}")) { scanner, _ in scanner.pair(in: path) }
        default: while let byte = byte(), !",]}#\n\r".utf8.contains(byte) { advance() }
        }
    }

    private mutating func elements(until end: UInt8, _ scan: (inout TOMLPositions, Int) -> Void) {
        let start = position
        let bracket = Character(Unicode.Scalar(end))
        let noun = end == UInt8(ascii: "]") ? "list" : "table"
        let opening = "the \(noun) that begins in line \(start.line), column \(start.column)"
        advance()
        skipBlank()
        var index = 0
        while let byte = byte(), byte != end {
            let before = offset
            if byte == UInt8(ascii: "}") { note(misplaced) }
            scan(&self, index)
            skipBlank()
            if self.byte() == UInt8(ascii: ",") {
                advance()
            } else if let byte = self.byte(), byte != end {
                note("expected , or \(bracket) of \(opening)")
            }
            skipBlank()
            index += 1
            if offset == before { return }
        }
        if byte() == nil { note("there is no \(bracket) at the end of \(opening)") }
        advance()
    }

    /// Scans a string of one of the four kinds.
    private mutating func string() {
        guard let quote = byte() else { return }
        let start = position
        let isMultiline = byte(1) == quote && byte(2) == quote
        advance(isMultiline ? 3 : 1)
        while let byte = byte() {
            if byte == UInt8(ascii: "\\"), quote == UInt8(ascii: "\"") {
                advance(2)
            } else if byte == quote, !isMultiline || self.byte(1) == quote && self.byte(2) == quote {
                // A multi-line string may end with two more quotes, which belong to it.
                repeat { advance() } while isMultiline && self.byte() == quote
                return
            } else if byte == UInt8(ascii: "\n"), !isMultiline {
                break
            } else {
                advance()
            }
        }
        note("the text that begins here has no quote at its end", at: start)
    }

    // MARK: Mistakes

    /// The mistake of a character that can begin neither a key nor a value.
    private var misplaced: String {
        let character = String(decoding: bytes[offset...].prefix(4), as: UTF8.self).first ?? "\n"
        if character == "=" { return "a key is missing before =; write key = value" }
        let subject = character.isNewline ? "the end of the line" : "\(character)"
        return "\(subject) cannot be here; write key = value or [table], and text in quotes"
    }

    /// Records a mistake at the current position, or at the one given, unless there is an earlier one.
    private mutating func note(_ reason: String, at place: FilePosition? = nil) {
        if mistake == nil { mistake = (place ?? position, reason) }
    }

    // MARK: Bytes

    private var position: FilePosition {
        // Counts characters as TOMLKit does, not bytes.
        let column = bytes[lineStart..<offset].count { $0 & 0xC0 != 0x80 } + 1
        return FilePosition(line: line, column: column)
    }

    private func byte(_ ahead: Int = 0) -> UInt8? { offset + ahead < bytes.count ? bytes[offset + ahead] : nil }

    private mutating func advance(_ count: Int = 1) {
        for _ in 0..<count where offset < bytes.count {
            offset += 1
            guard bytes[offset - 1] == UInt8(ascii: "\n") else { continue }
            line += 1
            lineStart = offset
        }
    }

    private mutating func skipSpace() {
        while let byte = byte(), byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") { advance() }
    }

    /// Skips spaces, line ends and comments.
    private mutating func skipBlank() {
        while let byte = byte(), " \t\r\n#".utf8.contains(byte) {
            advance()
            guard byte == UInt8(ascii: "#") else { continue }
            while let byte = self.byte(), byte != UInt8(ascii: "\n") { advance() }
        }
    }
}
