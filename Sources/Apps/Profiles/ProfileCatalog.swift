import FoundationEssentials
import Glibc
package import Model
package import TOML

/// The profiles of this broker: the installed ones, and the user's own.
package struct ProfileCatalog: Sendable {
    package struct Entry: Sendable {
        package let profile: Profile
        package let file: String

        package var summary: ProfileSummary { ProfileSummary(of: profile, in: file) }
    }

    /// The profiles in the order of their names.
    package let entries: [Entry]

    package var profiles: [Profile] { entries.map(\.profile) }

    /// Loads the profiles. A user's profile replaces the installed one with the same name.
    ///
    /// - Parameters:
    ///   - installedFolder: The folder of the installed profiles; nil if there is none.
    ///   - userFolder: The folder of the user's own profiles; nil if there is none.
    /// - Throws: `TOMLError` with every file that cannot be read or is invalid.
    package init(installedFolder: String?, userFolder: String?) throws(TOMLError) {
        var errors: [TOMLError] = []
        let installed = Self.entries(in: installedFolder, &errors)
        let own = Self.entries(in: userFolder, &errors)
        if let error = TOMLError.joining(errors) { throw error }
        entries = installed.merging(own) { $1 }.values.sorted { $0.profile.name < $1.profile.name }
    }

    private static func entries(in folder: String?, _ errors: inout [TOMLError]) -> [String: Entry] {
        var entries: [String: Entry] = [:]
        do throws(TOMLError) {
            for file in try files(in: folder) {
                do throws(TOMLError) {
                    let entry = Entry(profile: try Profile(TOMLDocument(contentsOf: file)), file: file)
                    let name = entry.profile.name
                    if let other = entries[name] {
                        let reason = "name is \"\(name)\", which is the name of \(other.file) too; use another name"
                        throw .conflict(file: file, reason: reason)
                    }
                    entries[name] = entry
                } catch {
                    errors.append(error)
                }
            }
        } catch {
            errors.append(error)
        }
        return entries
    }

    /// Returns the TOML files of a folder; none if the folder does not exist.
    private static func files(in folder: String?) throws(TOMLError) -> [String] {
        guard let folder, FileManager.default.fileExists(atPath: folder) else { return [] }
        do {
            let names = try FileManager.default.contentsOfDirectory(atPath: folder)
            return names.filter { $0.hasSuffix(".toml") && !$0.hasPrefix(".") }.sorted().map { "\(folder)/\($0)" }
        } catch {
            throw .unreadable(file: folder, reason: "its files cannot be listed; let the broker's user read the folder")
        }
    }
}

/// The folders of the profiles.
extension ProfileCatalog {
    /// Returns the folder of the installed profiles: `share/patchbay/profiles` beside the folder of the executable.
    /// An executable in the source tree where it was built uses the tree's `config/profiles`. Nil if neither exists.
    package static func installedFolder(executable: String? = Self.executable) -> String? {
        guard let executable else { return nil }
        var places = ["\(folder(of: folder(of: executable)))/share/patchbay/profiles"]
        if let build = executable.firstRange(of: "/.build/") {
            places.append("\(executable[..<build.lowerBound])/config/profiles")
        }
        return places.first { FileManager.default.fileExists(atPath: $0) }
    }

    /// Returns the folder `profiles` next to the configuration file; nil if it does not exist.
    ///
    /// - Parameters:
    ///   - file: The configuration file; nil if there is none.
    ///   - searchPaths: The paths of configuration files. Without a file, the first of their folders with profiles is used.
    /// - Returns: The folder.
    package static func userFolder(file: String?, searchPaths: [String]) -> String? {
        let folders = (file.map { [$0] } ?? searchPaths).map { "\(folder(of: $0))/profiles" }
        return folders.first { FileManager.default.fileExists(atPath: $0) }
    }

    /// The path of this program; nil if /proc is not mounted.
    private static var executable: String? {
        try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
    }

    private static func folder(of path: String) -> String {
        guard let slash = path.lastIndex(of: "/") else { return "." }
        return String(path[..<slash])
    }
}
