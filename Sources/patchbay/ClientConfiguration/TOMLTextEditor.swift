import Model

/// Adds, changes and removes one table of a TOML text, and keeps every other byte.
struct TOMLTextEditor {
    typealias Failure = ConfigurationEditFailure

    private var text: TOMLText

    init(_ bytes: [UInt8]) throws(Failure) { text = try TOMLText.parsed(bytes) }

    var bytes: [UInt8] { text.bytes }

    /// Returns the members of a table that JSON can express; nil without the table.
    ///
    /// - Throws: `Failure.layout` or `Failure.parent` for a table in another form.
    func members(of table: [String]) throws(Failure) -> JSONObject? {
        let own = text.statements.filter { $0.path.starts(with: table) }
        for statement in text.statements {
            let isElement = statement.value == nil && statement.path.last?.hasPrefix("[") == true
            let path = isElement ? statement.path.dropLast() : statement.path[...]
            guard statement.value != nil || isElement, table.starts(with: path) else { continue }
            let inline = text.inlineNames.first { $0.path.starts(with: table) }?.offset
            if let entry = path.count == table.count ? statement.range.lowerBound : inline {
                throw .layout(line: text.line(at: entry))
            }
            throw .parent(Array(path), line: text.line(at: statement.range.lowerBound))
        }
        guard own.isEmpty || own.contains(where: { $0.value == nil && $0.path == table }) else {
            throw .layout(line: text.line(at: own[0].range.lowerBound))
        }
        var members: JSONObject = [:]
        for statement in own where statement.path.count == table.count + 1 {
            guard let value = statement.value else { continue }
            members[statement.path[table.count]] = try? JSON(parsing: bytes[value])
        }
        return own.isEmpty ? nil : members
    }

    /// Sets members of a table, and appends a table that is missing. The names are bare keys.
    mutating func set(_ table: [String], _ members: JSONObject) throws(Failure) {
        guard let old = try self.members(of: table) else { return try append(table, members) }
        for member in members.members where old[member.name] != member.value {
            let path = table + [member.name]
            if let value = text.statements.first(where: { $0.path == path })?.value {
                try text.refuseComments(in: value)
                text = try text.replacing(value, with: member.value.bytes)
            } else if let header = text.statements.first(where: { $0.path == table && $0.value == nil }) {
                let end = endOfLine(from: header.range.upperBound)
                text = try text.replacing(end..<end, with: newline + Self.line(member))
            }
        }
    }

    /// Removes a table with its subtables. Returns false if there is none.
    mutating func remove(_ table: [String]) throws(Failure) -> Bool {
        guard try members(of: table) != nil else { return false }
        while let index = text.statements.firstIndex(where: { $0.path.starts(with: table) }) {
            let next = text.statements[index...].firstIndex { !$0.path.starts(with: table) }
            // A table of another name may follow; the comments above it belong to it.
            let last = text.statements[(next ?? text.statements.count) - 1].range.upperBound
            let start = startOfLine(from: text.statements[index].range.lowerBound)
            var end = behindLineEnd(endOfLine(from: last))
            try text.refuseComments(in: start..<end)
            // The blank line behind the table, or the one in front of it at the end of the text.
            var begin = start
            let behindBlank = behindLineEnd(end)
            if behindBlank > end {
                end = behindBlank
            } else if end == bytes.count, bytes[..<begin].suffix(newline.count * 2).elementsEqual(newline + newline) {
                begin -= newline.count
            }
            text = try text.replacing(begin..<end, with: [])
        }
        return true
    }

    private mutating func append(_ table: [String], _ members: JSONObject) throws(Failure) {
        let isEnded = bytes.isEmpty || bytes.last == UInt8(ascii: "\n")
        let isBlank = bytes.isEmpty || bytes.suffix(newline.count * 2).elementsEqual(newline + newline)
        let header = Array("[\(table.joined(separator: "."))]".utf8)
        let lines = [header] + members.members.map(Self.line)
        let added = (isEnded ? [] : newline) + (isBlank ? [] : newline) + lines.flatMap { $0 + newline }
        text = try text.replacing(bytes.count..<bytes.count, with: added)
    }

    private static func line(_ member: JSONObject.Member) -> [UInt8] {
        Array("\(member.name) = ".utf8) + member.value.spaced
    }

    private var newline: [UInt8] { bytes.firstRange(of: Array("\r\n".utf8)) == nil ? [10] : [13, 10] }

    private func startOfLine(from offset: Int) -> Int {
        bytes[..<offset].lastIndex(of: UInt8(ascii: "\n")).map { $0 + 1 } ?? 0
    }

    /// Returns the offset behind the line end at an offset, or the offset itself without a line end.
    private func behindLineEnd(_ offset: Int) -> Int {
        let length = bytes[offset...].starts(with: [13, 10]) ? 2 : bytes[offset...].first == 10 ? 1 : 0
        return offset + length
    }

    /// Returns the offset of the line end at or behind an offset.
    private func endOfLine(from offset: Int) -> Int {
        bytes[offset...].firstIndex { $0 == UInt8(ascii: "\n") || $0 == UInt8(ascii: "\r") } ?? bytes.count
    }
}
