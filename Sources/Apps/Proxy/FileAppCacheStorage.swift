import Glibc
package import Logging
package import Model
import SystemIO

/// Stores the cached data of apps, one file per app in a directory of its own.
///
/// With a single file, each change of one app's tools would rewrite several megabytes.
package struct FileAppCacheStorage: AppCacheStorage {
    private let path: String
    private let logger: Logger

    /// Uses the directory `apps` in the state directory, created with the first file.
    package init(in directory: String, logger: Logger) {
        path = "\(directory)/apps"
        self.logger = logger
    }

    package func load(_ id: EndpointID) async -> String? {
        guard access(path, F_OK) == 0 else { return nil }
        do { return try await file(of: id).read() } catch {
            logger.error(
                "an app's cache file cannot be read; the app is asked again",
                metadata: ["endpoint": "\(id)", "reason": "\(error)"]
            )
            return nil
        }
    }

    package func save(_ text: String, of id: EndpointID) async {
        mkdir(path, 0o700)
        do {
            try await file(of: id).write(text)
        } catch {
            logger.error(
                "an app's cache file could not be written",
                metadata: ["endpoint": "\(id)", "reason": "\(error)"]
            )
        }
    }

    package func delete(_ id: EndpointID) async { unlink("\(path)/\(id).json") }

    private func file(of id: EndpointID) -> StateFile<String> { StateFile(id.text, in: path, logger: logger) }
}
