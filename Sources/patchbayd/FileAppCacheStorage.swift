import FoundationEssentials
import Glibc
import Logging
import MCP
import Model
import SystemIO

/// Keeps what apps said while they were there: a file for each, in a folder of their own.
///
/// One file for all would be written anew, megabytes of it, whenever one app lists another tool.
struct FileAppCacheStorage: AppCacheStorage {
    private let path: String
    private let logger: Logger

    /// Makes its folder in the state directory when there is something to keep.
    init(in directory: String, logger: Logger) {
        path = "\(directory)/apps"
        self.logger = logger
    }

    func recall(_ id: EndpointID) async -> String? {
        guard access(path, F_OK) == 0 else { return nil }
        do { return try await file(of: id).read() } catch {
            logger.error("what an app said cannot be read", metadata: ["endpoint": "\(id)", "reason": "\(error)"])
            return nil
        }
    }

    func keep(_ text: String, of id: EndpointID) async {
        mkdir(path, 0o700)
        do {
            try await file(of: id).write(text)
        } catch {
            logger.error("what an app said is not kept", metadata: ["endpoint": "\(id)", "reason": "\(error)"])
        }
    }

    func forget(_ id: EndpointID) async { unlink("\(path)/\(id).json") }

    private func file(of id: EndpointID) -> StateFile<String> { StateFile(id.text, in: path, logger: logger) }
}
