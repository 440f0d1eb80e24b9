import Apps
import FoundationEssentials
import Glibc
import Model
import SystemIO
import TOML

/// Finds, reads and parses the configuration file. An unknown key is an error.
struct ConfigurationLoader {
    /// The environment, for `XDG_CONFIG_HOME` and `HOME`.
    let environment: [String: String]

    /// The paths to search if no file is named, in this order.
    var searchPaths: [String] {
        let home = environment["XDG_CONFIG_HOME"] ?? environment["HOME"].map { "\($0)/.config" }
        return [home.map { "\($0)/patchbay/patchbay.toml" }, "/etc/patchbay/patchbay.toml"].compactMap { $0 }
    }

    /// Returns the file named with `--config`, or the first file of the search paths; nil if there is none.
    func file(explicit: String?) -> String? {
        explicit ?? searchPaths.first { FileManager.default.fileExists(atPath: $0) }
    }

    /// Loads the configuration and the profiles.
    ///
    /// - Parameters:
    ///   - file: The file, which must exist. Nil selects the defaults.
    ///   - installedProfiles: The folder of the installed profiles; nil if there is none.
    /// - Returns: The configuration with its profiles.
    /// - Throws: `ConfigurationError` with every error of every file.
    func load(_ file: String?, installedProfiles: String?) throws(ConfigurationError) -> LoadedConfiguration {
        var errors: [ConfigurationError] = []
        var profiles: ProfileCatalog?
        do {
            profiles = try ProfileCatalog(
                installedFolder: installedProfiles,
                userFolder: ProfileCatalog.userFolder(file: file, searchPaths: searchPaths)
            )
        } catch { errors.append(.invalid(error)) }
        do {
            let (configuration, lines) = try load(file, profileKinds: profiles?.profiles.map(\.kind))
            if let profiles {
                return LoadedConfiguration(configuration: configuration, profiles: profiles, lines: lines)
            }
        } catch { errors.append(error) }
        throw .several(errors)
    }

    /// Loads the configuration.
    ///
    /// - Parameters:
    ///   - file: The file, which must exist. Nil selects the defaults.
    ///   - profileKinds: The endpoint kinds that profiles describe; nil accepts every kind.
    /// - Returns: The configuration, and the line of each key in the file.
    /// - Throws: `ConfigurationError` with every error of the file.
    func load(_ file: String?, profileKinds: [EndpointKind]? = [])
        throws(ConfigurationError) -> (configuration: Configuration, lines: [String: Int])
    {
        var (configuration, lines): (Configuration, [String: Int]) = (Configuration(), [:])
        var errors: [ConfigurationError] = []
        if let file {
            let table: TOMLTable
            var collector = TOMLErrorCollector()
            do { table = TOMLTable(try TOMLDocument(recovering: file, errors: &collector)) } catch {
                throw .invalid(error)
            }
            let context = ConfigurationContext(environment: environment, profileKinds: profileKinds)
            configuration = Configuration(table, in: context, errors: &collector)
            configuration.file = file
            for key in ConfigurationKey.all { lines[key.name] = key.line(in: table) }
            if let error = TOMLError.joining(collector.errors) { errors.append(.invalid(error)) }
        }
        // The address may come from the environment.
        do { if configuration.devices.enabled { _ = try configuration.usbmuxdAddress(environment) } } catch {
            errors.append(error)
        }
        guard errors.isEmpty else { throw .several(errors) }
        return (configuration, lines)
    }
}

/// A valid configuration with its profiles, and the place of each key in the file.
struct LoadedConfiguration: Sendable {
    var configuration: Configuration
    let profiles: ProfileCatalog
    /// The line of each key in the file. Other keys have their default.
    let lines: [String: Int]
}

/// An error in the configuration, with its location and the valid form.
enum ConfigurationError: Error, Equatable {
    /// The configuration file or a profile cannot be read or is invalid.
    case invalid(TOMLError)
    /// A value is well-formed, but not usable on this machine. `reason` continues the name of the key.
    case unusable(key: String, reason: String)
    case badAddress(reason: String)
    /// More than one file is invalid.
    case several([ConfigurationError])
}

extension ConfigurationError {
    /// Returns why the value of a key is not usable, as a continuation of the name of the key; nil if it is.
    static func reason(_ body: () throws(ConfigurationError) -> Void) -> String? {
        do { try body() } catch { if case .unusable(_, let reason) = error { return reason } }
        return nil
    }
}

/// The message without control characters: keys and values from the file must not control the terminal.
extension ConfigurationError: CustomStringConvertible {
    var description: String { messages.map { SanitizedText($0, limit: .max).text }.joined(separator: "\n") }

    /// One line for each error.
    private var messages: [String] {
        switch self {
        case .invalid(let error): error.errors.map(\.description)
        case .unusable(let key, let reason): ["\(key) \(reason)"]
        case .badAddress(let reason): [reason]
        case .several(let errors): errors.flatMap(\.messages)
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
