import Model

/// The text of a configuration file, with the places of its comments.
protocol ConfigurationText {
    var bytes: [UInt8] { get }
    var comments: [Range<Int>] { get }

    init(_ bytes: [UInt8]) throws(ConfigurationSyntaxError)

    /// The number of the line with a byte.
    func line(at offset: Int) -> Int
}

/// The reason why a text cannot be read, with the line that begins with 1.
struct ConfigurationSyntaxError: Error, Equatable {
    let line: Int
    let reason: String
}

/// The reason why a text cannot be changed without the loss of a part.
enum ConfigurationEditFailure: Error, Equatable {
    case syntax(ConfigurationSyntaxError)
    /// The value at this path is no object.
    case noObject([String])
    /// This line has the table in a form that cannot be changed line by line, such as an inline table.
    case layout(line: Int)
    /// This line has a table around it as an inline table or as an array.
    case parent([String], line: Int)
    /// The change would remove the comment on this line.
    case comment(line: Int)
}

extension ConfigurationText {
    static func parsed(_ bytes: some Sequence<UInt8>) throws(ConfigurationEditFailure) -> Self {
        do { return try Self(Array(bytes)) } catch { throw .syntax(error) }
    }

    func replacing(_ range: Range<Int>, with new: [UInt8]) throws(ConfigurationEditFailure) -> Self {
        try Self.parsed(bytes[..<range.lowerBound] + new + bytes[range.upperBound...])
    }

    func refuseComments(in range: Range<Int>) throws(ConfigurationEditFailure) {
        guard let comment = comments.first(where: { $0.overlaps(range) }) else { return }
        throw .comment(line: line(at: comment.lowerBound))
    }
}

extension JSON {
    /// The value on one line, with a space behind each comma. Texts and lists of texts have this form also in TOML.
    var spaced: [UInt8] {
        guard let elements = array else { return bytes }
        return Array("[".utf8) + Array(elements.map(\.bytes).joined(separator: Array(", ".utf8))) + Array("]".utf8)
    }
}
