import CLinux
import FoundationEssentials
import Glibc
import Model
import Profiles
import SystemIO
import TOMLKit

/// Finds, reads and parses the configuration file. An unknown key is an error.
struct ConfigurationLoader {
    /// The environment, for `XDG_CONFIG_HOME` and `HOME`.
    let environment: [String: String]

    /// The paths to search if no file is named, in this order.
    var searchPaths: [String] {
        let home = environment["XDG_CONFIG_HOME"] ?? environment["HOME"].map { "\($0)/.config" }
        return [home.map { "\($0)/patchbay/patchbay.toml" }, "/etc/patchbay/patchbay.toml"].compactMap { $0 }
    }

    /// Loads the configuration.
    ///
    /// - Parameter explicit: The file named with `--config`, which must exist.
    /// - Returns: The configuration; the defaults if there is no file.
    /// - Throws: `ConfigurationError`.
    func load(explicit: String?) throws -> Configuration {
        guard let file = explicit ?? searchPaths.first(where: { FileManager.default.fileExists(atPath: $0) })
        else {
            return Configuration()
        }
        var configuration = try Self.parse(Self.text(of: file), file: file)
        configuration.file = file
        return configuration
    }

    /// Parses and validates TOML text; `file` is the name for error messages.
    ///
    /// - Throws: `ConfigurationError`.
    static func parse(_ text: String, file: String) throws -> Configuration {
        if let position = TOMLPositions(text).misplacedCharacter {
            throw ConfigurationError.syntax(
                file: file,
                line: position.line,
                column: position.column,
                reason: "expected a key or a value, saw another character"
            )
        }
        do {
            let configuration = try TOMLDecoder(strictDecoding: true).decode(Configuration.self, from: text)
            if let problem = ConfigurationValidator(configuration: configuration).problem {
                throw ConfigurationError.wrong(file: file, reason: problem)
            }
            return configuration
        } catch let error as ConfigurationError {
            throw error
        } catch let error as TOMLParseError {
            throw ConfigurationError.syntax(
                file: file,
                line: error.source.begin.line,
                column: error.source.begin.column,
                reason: error.description
            )
        } catch let error as UnexpectedKeysError {
            throw ConfigurationError.unknownKeys(
                file: file,
                keys: error.keys.values.map { ConfigurationValueError.keyPath($0) }.sorted()
            )
        } catch let error as ConfigurationValueError {
            throw ConfigurationError.wrong(file: file, reason: error.message)
        }
    }

    /// Returns the content of a TOML file.
    static func text(of file: String) throws(ConfigurationError) -> String {
        guard let text = String(validating: try bytes(of: file), as: UTF8.self), !text.utf8.contains(0) else {
            throw .notText(file: file)
        }
        return text
    }

    private static func bytes(of file: String) throws(ConfigurationError) -> [UInt8] {
        let descriptor = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { throw unreadable(file, errno) }
        defer { close(descriptor) }
        var facts = stat()
        guard fstat(descriptor, &facts) == 0 else { throw unreadable(file, errno) }
        guard facts.st_mode & S_IFMT == S_IFREG else {
            let isFolder = facts.st_mode & S_IFMT == S_IFDIR
            throw .unreadable(
                file: file,
                reason: "it is \(isFolder ? "a folder" : "no regular file"); name a TOML file"
            )
        }
        guard let data = FileManager.default.contents(atPath: file) else { throw unreadable(file, errno) }
        return Array(data)
    }

    private static func unreadable(_ file: String, _ code: CInt) -> ConfigurationError {
        let hint =
            switch code {
            case ENOENT, ENOTDIR: "check the path"
            case EACCES, EPERM: "let the broker's user read it"
            default: "try another file"
            }
        return .unreadable(file: file, reason: "\(SocketError.message(for: code)); \(hint)")
    }
}

/// An error in the configuration, with its location and the valid form.
enum ConfigurationError: Error, Equatable {
    /// The file cannot be read.
    case unreadable(file: String, reason: String)
    case notText(file: String)
    case syntax(file: String, line: Int, column: Int, reason: String)
    case unknownKeys(file: String, keys: [String])
    case wrong(file: String, reason: String)
    case profile(ProfileError)
    case badAddress(reason: String)
}

/// The message without control characters: keys and values from the file must not control the terminal.
extension ConfigurationError: CustomStringConvertible {
    var description: String { SanitizedText(message, limit: .max).text }

    private var message: String {
        switch self {
        case .unreadable(let file, let reason): "\(file) cannot be read: \(reason)"
        case .notText(let file): "\(file) is not text in UTF-8; give a TOML file such as patchbay.example.toml"
        case .syntax(let file, let line, let column, let reason): "\(file), line \(line), column \(column): \(reason)"
        case .unknownKeys(let file, let keys):
            "\(file): there is no key \(keys.joined(separator: ", ")); patchbay.example.toml has every key there is"
        case .wrong(let file, let reason): "\(file): \(reason)"
        case .profile(let error): error.description
        case .badAddress(let reason): reason
        }
    }
}

/// Converts a path of the command line or the environment to an absolute path.
enum AbsolutePath {
    /// Returns the absolute path; a relative path is resolved in the working directory.
    static func of(_ path: String) -> String {
        path.hasPrefix("/") || path.isEmpty ? path : "\(FileManager.default.currentDirectoryPath)/\(path)"
    }
}
