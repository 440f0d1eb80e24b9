import Model

/// A JSON text with comments and trailing commas (JSONC), and the places of its values.
struct JSONText: ConfigurationText {
    typealias SyntaxError = ConfigurationSyntaxError

    struct Member {
        let name: String
        /// From the quote of the name to the end of the value.
        let range: Range<Int>
        let value: Node
    }

    struct Node {
        let range: Range<Int>
        /// The value of a text, a number, a Boolean or null.
        var scalar = JSON.null
        /// The members of an object; nil for other values.
        var members: [Member]?
        /// The elements of an array; nil for other values.
        var elements: [Node]?
        /// The end of the comma behind the last member; nil without that comma.
        var trailingComma: Int?

        var json: JSON {
            if let members {
                return .object(JSONObject(members.map { JSONObject.Member(name: $0.name, value: $0.value.json) }))
            }
            return elements.map { .array($0.map(\.json)) } ?? scalar
        }
    }

    let bytes: [UInt8]
    private(set) var root = Node(range: 0..<0)
    /// The places of the comments.
    private(set) var comments: [Range<Int>] = []
    private var offset = 0

    private static let maxDepth = 200

    /// Parses a text in UTF-8, with or without a byte order mark.
    init(_ bytes: [UInt8]) throws(SyntaxError) {
        self.bytes = bytes
        if bytes.starts(with: [0xEF, 0xBB, 0xBF]) { offset = 3 }
        try skipBlank()
        root = try value(depth: 0)
        try skipBlank()
        guard offset == bytes.count else { throw error("there is text behind the value") }
    }

    func line(at offset: Int) -> Int {
        let text = bytes[..<min(offset, bytes.count)]
        // A carriage return alone also ends a line, and with it a comment.
        return 1 + text.indices.count { text[$0] == 10 || text[$0] == 13 && (text[($0 + 1)...].first != 10) }
    }

    private func error(_ reason: String) -> SyntaxError { SyntaxError(line: line(at: offset), reason: reason) }

    private func peek(_ distance: Int = 0) -> UInt8? {
        offset + distance < bytes.count ? bytes[offset + distance] : nil
    }

    private mutating func skipBlank() throws(SyntaxError) {
        while let byte = peek() {
            switch byte {
            case UInt8(ascii: " "), UInt8(ascii: "\t"), UInt8(ascii: "\n"), UInt8(ascii: "\r"): offset += 1
            case UInt8(ascii: "/"): try skipComment()
            default: return
            }
        }
    }

    private mutating func skipComment() throws(SyntaxError) {
        let start = offset
        switch peek(1) {
        case UInt8(ascii: "/"):
            while let byte = peek(), byte != UInt8(ascii: "\n"), byte != UInt8(ascii: "\r") { offset += 1 }
        case UInt8(ascii: "*"):
            offset += 2
            while peek() != nil, !(peek() == UInt8(ascii: "*") && peek(1) == UInt8(ascii: "/")) { offset += 1 }
            guard peek() != nil else { throw error("a comment has no end") }
            offset += 2
        default: throw error("there is a / outside of a comment")
        }
        comments.append(start..<offset)
    }

    private mutating func value(depth: Int) throws(SyntaxError) -> Node {
        guard depth < Self.maxDepth else { throw error("the values are nested too deeply") }
        switch peek() {
        case UInt8(ascii: "{"): return try object(depth: depth)
        case UInt8(ascii: "["): return try array(depth: depth)
        case UInt8(ascii: "\""): return try scalar(end: try endOfString())
        case nil: throw error("a value is missing at the end")
        default:
            var end = offset
            while end < bytes.count, !Self.delimiters.contains(bytes[end]) { end += 1 }
            return try scalar(end: end)
        }
    }

    private static let delimiters = Set(" \t\r\n,]}:/\"{[".utf8)

    private func endOfString() throws(SyntaxError) -> Int {
        var end = offset + 1
        while end < bytes.count, bytes[end] != UInt8(ascii: "\""), bytes[end] != UInt8(ascii: "\n") {
            end += bytes[end] == UInt8(ascii: "\\") ? 2 : 1
        }
        guard end < bytes.count, bytes[end] == UInt8(ascii: "\"") else { throw error("a text has no closing quote") }
        return end + 1
    }

    private mutating func scalar(end: Int) throws(SyntaxError) -> Node {
        let range = offset..<end
        guard let json = try? JSON(parsing: bytes[range]) else { throw error("a value cannot be read") }
        offset = end
        return Node(range: range, scalar: json)
    }

    private mutating func array(depth: Int) throws(SyntaxError) -> Node {
        let start = offset
        var elements: [Node] = []
        _ = try list(until: UInt8(ascii: "]")) { text throws(SyntaxError) in
            elements.append(try text.value(depth: depth + 1))
        }
        return Node(range: start..<offset, elements: elements)
    }

    private mutating func object(depth: Int) throws(SyntaxError) -> Node {
        let start = offset
        var (members, names): ([Member], Set<String>) = ([], [])
        let trailingComma = try list(until: UInt8(ascii: "}")) { text throws(SyntaxError) in
            let start = text.offset
            guard text.peek() == UInt8(ascii: "\"") else { throw text.error("a name in quotes is missing") }
            let name = try text.scalar(end: try text.endOfString()).json.string ?? ""
            guard names.insert(name).inserted else { throw text.error("\"\(name)\" is there twice") }
            try text.skipBlank()
            guard text.peek() == UInt8(ascii: ":") else { throw text.error("a colon is missing behind \"\(name)\"") }
            text.offset += 1
            try text.skipBlank()
            let value = try text.value(depth: depth + 1)
            members.append(Member(name: name, range: start..<value.range.upperBound, value: value))
        }
        return Node(range: start..<offset, members: members, trailingComma: trailingComma)
    }

    /// Reads elements with commas between them. Returns the end of a comma behind the last element.
    private mutating func list(
        until close: UInt8,
        _ element: (inout JSONText) throws(SyntaxError) -> Void
    ) throws(SyntaxError) -> Int? {
        offset += 1
        try skipBlank()
        var trailingComma: Int?
        while peek() != close {
            try element(&self)
            trailingComma = nil
            try skipBlank()
            if peek() == UInt8(ascii: ",") {
                offset += 1
                trailingComma = offset
                try skipBlank()
            } else if peek() != close {
                throw error("a comma or a closing bracket is missing")
            }
        }
        offset += 1
        return trailingComma
    }
}
