import FoundationEssentials

/// What was said on the command line or in the environment, as a path that holds wherever it is used.
enum AbsolutePath {
    /// A relative path begins in the working directory.
    static func of(_ path: String) -> String {
        path.hasPrefix("/") || path.isEmpty ? path : "\(FileManager.default.currentDirectoryPath)/\(path)"
    }
}
