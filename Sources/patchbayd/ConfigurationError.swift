import Model

/// What is wrong with the configuration, where, and how it should be.
enum ConfigurationError: Error, Equatable {
    /// The file cannot be had; `what` is the reason in words.
    case unreadable(file: String, what: String)
    case notText(file: String)
    case syntax(file: String, line: Int, column: Int, what: String)
    case unknownKeys(file: String, keys: [String])
    case wrong(file: String, what: String)
    case badAddress(what: String)
}

/// Without anything that a terminal would obey: keys and values come from the file as they are.
extension ConfigurationError: CustomStringConvertible {
    var description: String { SanitizedText(sentence, limit: .max).text }

    private var sentence: String {
        switch self {
        case .unreadable(let file, let what): "\(file) cannot be read: \(what)"
        case .notText(let file): "\(file) is not text in UTF-8; give a TOML file such as patchbay.example.toml"
        case .syntax(let file, let line, let column, let what): "\(file), line \(line), column \(column): \(what)"
        case .unknownKeys(let file, let keys):
            "\(file): there is no key \(keys.joined(separator: ", ")); patchbay.example.toml has every key there is"
        case .wrong(let file, let what): "\(file): \(what)"
        case .badAddress(let what): what
        }
    }
}
