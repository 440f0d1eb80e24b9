import Model

/// Changes single members of a JSON text, and keeps every other byte: comments, order, indentation and line ends.
struct JSONTextEditor {
    typealias Failure = ConfigurationEditFailure

    private var text: JSONText

    init(_ bytes: [UInt8]) throws(Failure) { text = try JSONText.parsed(bytes) }

    var bytes: [UInt8] { text.bytes }

    /// Returns the value at a path; nil if there is none.
    func value(at path: [String]) -> JSON? {
        var node: JSONText.Node? = text.root
        for name in path { node = node?.members?.first { $0.name == name }?.value }
        return node?.json
    }

    /// Sets a member, and creates the objects around it. Does nothing if the member has this value already.
    mutating func set(_ path: [String], to value: JSON) throws(Failure) {
        guard self.value(at: path) != value else { return }
        var (node, depth) = (text.root, 0)
        while depth < path.count {
            guard let members = node.members else { throw .noObject(Array(path[..<depth])) }
            guard let member = members.first(where: { $0.name == path[depth] }) else { break }
            (node, depth) = (member.value, depth + 1)
        }
        if depth == path.count {
            try text.refuseComments(in: node.range)
            let indent = indentation(ofLineAt: node.range.lowerBound)
            text = try text.replacing(node.range, with: Self.lines(of: value, indent, unit, newline))
        } else {
            let inner = path[(depth + 1)...].reversed().reduce(value) {
                .object(JSONObject([.init(name: $1, value: $0)]))
            }
            try insert(path[depth], inner, into: node)
        }
    }

    /// Removes a member. Returns false if there is none.
    mutating func remove(_ path: [String]) throws(Failure) -> Bool {
        var node = text.root
        for name in path.dropLast() {
            guard let member = node.members?.first(where: { $0.name == name }) else { return false }
            node = member.value
        }
        guard let members = node.members, let index = members.firstIndex(where: { $0.name == path.last }) else {
            return false
        }
        let member = members[index].range
        let isLast = index == members.count - 1
        let end = isLast ? node.trailingComma ?? member.upperBound : comma(behind: member) + 1
        let start = endOfBlank(before: member.lowerBound)
        try text.refuseComments(in: start..<end)
        text = try text.replacing(start..<end, with: [])
        if isLast, index > 0, node.trailingComma == nil {
            // The comma in front of the last member, which may have comments behind it.
            let comma = comma(behind: members[index - 1].range)
            text = try text.replacing(comma..<(comma + 1), with: [])
        }
        return true
    }

    private mutating func insert(_ name: String, _ value: JSON, into node: JSONText.Node) throws(Failure) {
        let close = node.range.upperBound - 1
        let members = node.members ?? []
        // Behind the last member and the comments that follow it.
        let position = max(endOfBlank(before: close), node.range.lowerBound + 1)
        let isMultiline = bytes[node.range].contains(where: Self.isLineEnd) || members.isEmpty && !isOneLine
        let outer = indentation(ofLineAt: node.range.lowerBound)
        let indent = members.first.map { indentation(ofLineAt: $0.range.lowerBound) } ?? outer + unit
        let pretty = isMultiline ? Self.lines(of: value, indent, unit, newline) : value.bytes
        var added = Array(JSON.string(name).bytes + ": ".utf8) + pretty
        if isMultiline { added = newline + indent + added }
        if node.trailingComma != nil { added.append(UInt8(ascii: ",")) }
        if !isMultiline, !members.isEmpty { added.insert(UInt8(ascii: " "), at: 0) }
        if isMultiline, !bytes[position..<close].contains(where: Self.isLineEnd) { added += newline + outer }
        var changed = bytes
        changed.insert(contentsOf: added, at: position)
        // Inserted last, because it is in front of the new member.
        if let last = members.last, node.trailingComma == nil {
            changed.insert(UInt8(ascii: ","), at: last.range.upperBound)
        }
        text = try JSONText.parsed(changed)
    }
}

/// The layout of the text.
extension JSONTextEditor {
    private var newline: [UInt8] {
        if bytes.firstRange(of: Array("\r\n".utf8)) != nil { return [13, 10] }
        return bytes.contains(13) && !bytes.contains(10) ? [13] : [10]
    }

    private static func isLineEnd(_ byte: UInt8) -> Bool { byte == UInt8(ascii: "\n") || byte == UInt8(ascii: "\r") }

    /// True for a text on one line, such as one that a program wrote without indentation.
    private var isOneLine: Bool { !bytes.dropLast(2).contains(where: Self.isLineEnd) && bytes.count > 4 }

    /// One step of indentation: that of the first indented line, or two spaces.
    private var unit: [UInt8] {
        for line in bytes.split(whereSeparator: Self.isLineEnd) {
            let blank = line.prefix { $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\t") }
            if !blank.isEmpty, blank.count < line.count { return blank.first == 9 ? [9] : Array(blank) }
        }
        return Array("  ".utf8)
    }

    private func indentation(ofLineAt offset: Int) -> [UInt8] {
        let start = bytes[..<offset].lastIndex(where: Self.isLineEnd).map { $0 + 1 } ?? 0
        return Array(bytes[start..<offset].prefix { $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\t") })
    }

    /// Returns the offset behind the last byte that is no blank.
    private func endOfBlank(before offset: Int) -> Int {
        var end = offset
        while end > 0, Set(" \t\r\n".utf8).contains(bytes[end - 1]) { end -= 1 }
        return end
    }

    private func comma(behind range: Range<Int>) -> Int {
        var offset = range.upperBound
        while offset < bytes.count,
            bytes[offset] != UInt8(ascii: ",") || text.comments.contains(where: { $0.contains(offset) })
        {
            offset += 1
        }
        return offset
    }

    /// Returns the text of a value: objects with one member a line, lists on one line.
    static func lines(of value: JSON, _ indent: [UInt8], _ unit: [UInt8], _ newline: [UInt8] = [10]) -> [UInt8] {
        switch value {
        case .object(let object) where !object.members.isEmpty:
            let members = object.members.map { member in
                indent + unit + JSON.string(member.name).bytes + Array(": ".utf8)
                    + lines(of: member.value, indent + unit, unit, newline)
            }
            return Array("{".utf8) + newline + Array(members.joined(separator: Array(",".utf8) + newline)) + newline
                + indent + Array("}".utf8)
        default: return value.spaced
        }
    }
}
