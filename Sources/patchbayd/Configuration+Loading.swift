import FoundationEssentials
import Logging
import Model
import TOMLKit

/// Finding the file and reading it strictly: a key that nobody knows is an error, not a wish.
extension Configuration {
    /// - Parameters:
    ///   - explicit: What `--config` says; that file must exist.
    ///   - environment: For `XDG_CONFIG_HOME` and `HOME`.
    /// - Returns: Every default where there is no file.
    /// - Throws: `ConfigurationError`.
    static func load(explicit: String?, environment: [String: String]) throws -> Configuration {
        guard let file = explicit ?? usual(environment).first(where: { FileManager.default.fileExists(atPath: $0) })
        else {
            return Configuration()
        }
        guard let data = FileManager.default.contents(atPath: file), let text = String(validating: data, as: UTF8.self)
        else {
            throw ConfigurationError.unreadable(file: file)
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
                keys: error.keys.values.map { $0.map(\.stringValue).joined(separator: ".") }.sorted()
            )
        } catch let error as DecodingError {
            throw ConfigurationError.wrong(file: file, what: error.place)
        }
    }

    private static func usual(_ environment: [String: String]) -> [String] {
        let home = environment["XDG_CONFIG_HOME"] ?? environment["HOME"].map { "\($0)/.config" }
        return [home.map { "\($0)/patchbay/patchbay.toml" }, "/etc/patchbay/patchbay.toml"].compactMap { $0 }
    }

    /// What the types cannot say.
    private var problem: String? {
        if Logger.Level(rawValue: broker.logLevel) == nil {
            let levels = Logger.Level.allCases.map(\.rawValue).joined(separator: ", ")
            return "broker.log_level is \"\(broker.logLevel)\"; it must be one of \(levels)"
        }
        if devices.maxStreams < 1 { return "devices.max_streams must be 1 or more" }
        if tunnels.maxConnections < 1 { return "tunnels.max_connections must be 1 or more" }
        for endpoint in endpoints {
            if let problem = endpoint.problem { return "endpoint \"\(Untrusted(endpoint.name))\": \(problem)" }
        }
        let names = endpoints.map(\.name)
        if let twice = names.first(where: { name in names.count { $0 == name } > 1 }) {
            return "two endpoints are called \"\(Untrusted(twice))\""
        }
        return nil
    }
}

extension DecodingError {
    /// Which key is wrong, and how.
    fileprivate var place: String {
        func path(_ context: Context, _ last: (any CodingKey)? = nil) -> String {
            (context.codingPath + (last.map { [$0] } ?? [])).map(\.stringValue).joined(separator: ".")
        }
        return switch self {
        // TOMLKit says keyNotFound where a scalar is there and has the wrong type.
        case .keyNotFound(let key, let context): "\(path(context, key)) is missing or has the wrong type"
        case .typeMismatch(let type, let context): "\(path(context)) must be of the type \(type)"
        case .valueNotFound(let type, let context): "\(path(context)) must be of the type \(type)"
        case .dataCorrupted(let context): "\(path(context)): \(context.debugDescription)"
        @unknown default: "it cannot be read"
        }
    }
}
