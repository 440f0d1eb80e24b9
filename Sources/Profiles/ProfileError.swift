import Model

/// The reason why a profile file or a call of one of its tools is rejected.
package enum ProfileError: Error, Hashable, Sendable {
    /// The file is not TOML.
    case syntax(file: String, at: FilePosition, reason: String)
    /// A key is unknown or missing, or its value is invalid. `path` is the key, and `reason` the predicate.
    case invalid(file: String, at: FilePosition, path: String, reason: String)
    /// The profile has no such tool. `reason` says what works instead.
    case unknownTool(String, reason: String)
    /// An argument of a call is missing or invalid.
    case invalidArgument(tool: String, reason: String)
    /// The server answered with data that the profile does not describe. `reason` continues "it answers with".
    case invalidResponse(reason: String)
}

/// A position in a file; both numbers begin with 1.
package struct FilePosition: Hashable, Sendable, Comparable {
    package let line: Int
    package let column: Int

    package init(line: Int, column: Int) {
        self.line = line
        self.column = column
    }

    package static func < (one: FilePosition, other: FilePosition) -> Bool {
        (one.line, one.column) < (other.line, other.column)
    }
}

/// The message without control characters: keys of a file and names in a call must not control the terminal.
extension ProfileError: CustomStringConvertible {
    package var description: String { SanitizedText(message, limit: .max).text }

    private var message: String {
        switch self {
        case .syntax(let file, let position, let reason):
            "\(file), line \(position.line), column \(position.column): \(reason)"
        case .invalid(let file, let position, let path, let reason):
            "\(file), line \(position.line), column \(position.column): \(path) \(reason)"
        case .unknownTool(let name, let reason): "there is no tool \"\(name)\": \(reason)"
        case .invalidArgument(let tool, let reason): "\(tool) was not called: \(reason)"
        case .invalidResponse(let reason): "it answers with \(reason)"
        }
    }
}

/// The part of an error message that names similar names.
enum NameSuggestionFormatter {
    /// Returns `; did you mean "title"?`, or the existing names if none is similar.
    static func text(for word: String, among names: [String], listedAs kind: String) -> String {
        if let near = SimilarNameFinder.of(word, among: names, count: 1).first { return "; did you mean \"\(near)\"?" }
        return names.isEmpty ? "; there are no \(kind)" : "; the \(kind) are \(names.joined(separator: ", "))"
    }
}
