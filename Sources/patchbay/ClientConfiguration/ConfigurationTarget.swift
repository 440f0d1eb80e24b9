import FoundationEssentials

/// The place of a server in the configuration of a client.
struct ConfigurationTarget {
    let client: MCPClientKind
    let isProject: Bool
    /// The name of the server in the file.
    let name: String
    /// The absolute path of the file.
    let file: String

    /// - Parameters:
    ///   - client: The client.
    ///   - isProject: True for the file of the project that contains `folder`.
    ///   - name: The name of the server.
    ///   - folder: The working directory.
    ///   - environment: The environment of the process.
    /// - Throws: `CLIError` without a home folder.
    init(
        _ client: MCPClientKind,
        isProject: Bool,
        name: String,
        folder: String,
        environment: [String: String]
    ) throws(CLIError) {
        (self.client, self.isProject, self.name) = (client, isProject, name)
        if isProject {
            file = "\(Self.project(around: folder, with: client.projectFile))/\(client.projectFile)"
            return
        }
        guard let home = environment["HOME"], home.hasPrefix("/") else {
            throw CLIError(
                status: .configuration,
                message: "the file of \(client.product) cannot be found: $HOME is not an absolute path",
                hint: "set HOME, or use --project"
            )
        }
        file = client.userFile(home: home, environment: environment)
    }

    /// The path of the server's entry.
    var path: [String] { client.serversPath + [name] }

    /// Returns the nearest folder that has the file or is the root of a git repository, or else the folder itself.
    private static func project(around folder: String, with file: String) -> String {
        var candidate = folder
        while candidate.count > 1 {
            let isRoot = FileManager.default.fileExists(atPath: "\(candidate)/.git")
            if isRoot || FileManager.default.fileExists(atPath: "\(candidate)/\(file)") { return candidate }
            candidate = String(candidate[..<(candidate.lastIndex(of: "/") ?? candidate.startIndex)])
        }
        return folder
    }
}
