import Model

/// The reason why a TOML file is rejected, with its place in the file.
package indirect enum TOMLError: Error, Hashable, Sendable {
    /// The file cannot be read.
    case unreadable(file: String, reason: String)
    case notText(file: String)
    /// The file conflicts with another one.
    case conflict(file: String, reason: String)
    /// The file is not TOML.
    case syntax(file: String, at: FilePosition, reason: String)
    /// A key is unknown or missing, or its value is invalid. `reason` names the key.
    case invalid(file: String, at: FilePosition, reason: String)
    /// Several errors, in the order of the files and of their lines. Never nested, and never with fewer than two errors.
    case several([TOMLError])

    /// Joins errors into one, each once; nil without an error.
    package static func joining(_ errors: [TOMLError]) -> TOMLError? {
        let single = Set(errors.flatMap(\.errors)).sorted { one, other in
            one.place == other.place ? one.message < other.message : one.place < other.place
        }
        return single.count > 1 ? .several(single) : single.first
    }

    /// The single errors.
    package var errors: [TOMLError] { if case .several(let errors) = self { errors } else { [self] } }

    private var place: (file: String, position: FilePosition) {
        switch self {
        case .unreadable(let file, _), .notText(let file), .conflict(let file, _):
            (file, FilePosition(line: 1, column: 1))
        case .syntax(let file, let position, _), .invalid(let file, let position, _): (file, position)
        case .several(let errors): errors[0].place
        }
    }
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
/// Several errors are several lines.
extension TOMLError: CustomStringConvertible {
    package var description: String {
        errors.map { SanitizedText($0.message, limit: .max).text }.joined(separator: "\n")
    }

    private var message: String {
        switch self {
        case .unreadable(let file, let reason): "\(file) cannot be read: \(reason)"
        case .notText(let file): "\(file) is not text in UTF-8; give a TOML file such as patchbay.example.toml"
        case .conflict(let file, let reason): "\(file): \(reason)"
        case .syntax(let file, let position, let reason), .invalid(let file, let position, let reason):
            "\(file):\(position.line):\(position.column): \(reason)"
        case .several: description
        }
    }
}

/// Collects the errors of a file, so that one run reports all of them.
package struct TOMLErrorCollector {
    package private(set) var errors: [TOMLError] = []

    package init() {}

    /// Reads one part of the file. An error does not prevent the reading of other parts.
    package mutating func attempt(_ body: () throws(TOMLError) -> Void) {
        do { try body() } catch { errors += error.errors }
    }

    /// Returns a value of the file; nil if the value is invalid.
    package mutating func value<Value>(_ body: () throws(TOMLError) -> Value) -> Value? {
        do { return try body() } catch {
            errors += error.errors
            return nil
        }
    }
}
