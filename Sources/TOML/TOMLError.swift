import Model

/// The reason why a TOML file is rejected, with its place in the file.
package enum TOMLError: Error, Hashable, Sendable {
    /// The file is not TOML.
    case syntax(file: String, at: FilePosition, reason: String)
    /// A key is unknown or missing, or its value is invalid. `reason` names the key.
    case invalid(file: String, at: FilePosition, reason: String)
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

/// The message in the form of compilers, `FILE:LINE:COLUMN: reason`, in which editors find the place. It has no control
/// characters, because keys of a file must not control the terminal.
extension TOMLError: CustomStringConvertible {
    package var description: String { SanitizedText(message, limit: .max).text }

    private var message: String {
        switch self {
        case .syntax(let file, let position, let reason): "\(file):\(position.line):\(position.column): \(reason)"
        case .invalid(let file, let position, let reason): "\(file):\(position.line): \(reason)"
        }
    }
}
