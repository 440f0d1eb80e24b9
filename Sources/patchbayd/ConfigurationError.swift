/// What is wrong with the configuration, where, and how it should be.
enum ConfigurationError: Error, Equatable {
    case unreadable(file: String)
    case syntax(file: String, line: Int, column: Int, what: String)
    case unknownKeys(file: String, keys: [String])
    case wrong(file: String, what: String)
    case badAddress(what: String)
}

extension ConfigurationError: CustomStringConvertible {
    var description: String {
        switch self {
        case .unreadable(let file): "\(file) cannot be read as text; check that it exists and who may read it"
        case .syntax(let file, let line, let column, let what): "\(file), line \(line), column \(column): \(what)"
        case .unknownKeys(let file, let keys):
            "\(file): nobody knows the key\(keys.count == 1 ? "" : "s") \(keys.joined(separator: ", ")); "
                + "patchbay.example.toml has every key there is"
        case .wrong(let file, let what): "\(file): \(what)"
        case .badAddress(let what): what
        }
    }
}
