import CLinux
import FoundationEssentials
import Glibc
import Model
import SystemIO
import TOMLKit

/// Finding the file and reading it strictly: a key that nobody knows is an error, not a wish.
extension Configuration {
    /// - Parameters:
    ///   - explicit: What `--config` says; that file must exist.
    ///   - environment: For `XDG_CONFIG_HOME` and `HOME`.
    /// - Returns: Every default where there is no file.
    /// - Throws: `ConfigurationError`.
    static func load(explicit: String?, environment: [String: String]) throws -> Configuration {
        guard let file = explicit ?? places(environment).first(where: { FileManager.default.fileExists(atPath: $0) })
        else {
            return Configuration()
        }
        guard let text = String(validating: try bytes(of: file), as: UTF8.self), !text.utf8.contains(0) else {
            throw ConfigurationError.notText(file: file)
        }
        var configuration = try parse(text, file: file)
        configuration.file = file
        return configuration
    }

    static func parse(_ text: String, file: String) throws -> Configuration {
        do {
            let configuration = try TOMLDecoder(strictDecoding: true).decode(Configuration.self, from: text)
            if let problem = configuration.problem { throw ConfigurationError.wrong(file: file, what: problem) }
            return configuration
        } catch let error as ConfigurationError {
            throw error
        } catch let error as TOMLParseError {
            throw ConfigurationError.syntax(
                file: file,
                line: error.source.begin.line,
                column: error.source.begin.column,
                what: error.description
            )
        } catch let error as UnexpectedKeysError {
            throw ConfigurationError.unknownKeys(
                file: file,
                keys: error.keys.values.map { ConfigurationValueError.place($0) }.sorted()
            )
        } catch let error as ConfigurationValueError {
            throw ConfigurationError.wrong(file: file, what: error.sentence)
        }
    }

    private static func bytes(of file: String) throws(ConfigurationError) -> [UInt8] {
        let descriptor = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { throw unreadable(file, errno) }
        defer { close(descriptor) }
        var facts = stat()
        guard fstat(descriptor, &facts) == 0 else { throw unreadable(file, errno) }
        guard facts.st_mode & S_IFMT == S_IFREG else {
            let isFolder = facts.st_mode & S_IFMT == S_IFDIR
            throw .unreadable(file: file, what: "it is \(isFolder ? "a folder" : "no regular file"); name a TOML file")
        }
        guard let data = FileManager.default.contents(atPath: file) else { throw unreadable(file, errno) }
        return Array(data)
    }

    private static func unreadable(_ file: String, _ code: CInt) -> ConfigurationError {
        let remedy =
            switch code {
            case ENOENT, ENOTDIR: "check the path"
            case EACCES, EPERM: "let the broker's user read it"
            default: "try another file"
            }
        return .unreadable(file: file, what: "\(SocketError.words(for: code)); \(remedy)")
    }

    /// Where the file is looked for when none is named, in this order.
    static func places(_ environment: [String: String]) -> [String] {
        let home = environment["XDG_CONFIG_HOME"] ?? environment["HOME"].map { "\($0)/.config" }
        return [home.map { "\($0)/patchbay/patchbay.toml" }, "/etc/patchbay/patchbay.toml"].compactMap { $0 }
    }
}

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
