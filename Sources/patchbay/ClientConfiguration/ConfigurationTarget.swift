import FoundationEssentials
import Glibc
import Model

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
    /// - Throws: `CLIError` without a home folder, or if the file of the project would be the user's own file or outside of
    ///   the project.
    init(
        _ client: MCPClientKind,
        isProject: Bool,
        name: String,
        folder: String,
        environment: [String: String]
    ) throws(CLIError) {
        (self.client, self.isProject, self.name) = (client, isProject, name)
        let home = environment["HOME"].flatMap { $0.hasPrefix("/") ? $0 : nil }
        if isProject {
            let (project, root) = Self.project(around: folder, with: client.projectFile, home: home.map(Self.realPath))
            file = "\(project)/\(client.projectFile)"
            let own = home.map { client.userFile(home: $0, environment: environment) }
            guard own.map(Self.realPath) != Self.realPath(file) else {
                throw .usage(
                    "\(file) is your own file, and not the file of a project",
                    try: "run the command in the folder of the project, or without --project"
                )
            }
            // A repository of another person may have such a link, for example to the file of another client.
            let (target, allowed) = (Self.realPath(file), Self.realPath(root))
            guard target.hasPrefix(allowed == "/" ? allowed : "\(allowed)/") else {
                throw CLIError.configuration(
                    "\(file) leads out of the project through a symbolic link to "
                        + "\(SanitizedText(target, limit: 500)); nothing was changed",
                    try: "remove the link, or run the command without --project"
                )
            }
            return
        }
        guard let home else {
            throw CLIError.configuration(
                "the file of \(client.product) cannot be found: $HOME is not an absolute path",
                try: "set HOME, or use --project"
            )
        }
        file = client.userFile(home: home, environment: environment)
    }

    /// The path of the server's entry.
    var path: [String] { client.serversPath + [name] }

    /// Returns the nearest folder in the git repository that has the file, and the root of the repository. Without
    /// such a folder it is the root, and without a repository the folder itself. The home folder and the folders
    /// above it are no project.
    private static func project(
        around folder: String,
        with file: String,
        home: String?
    ) -> (folder: String, root: String) {
        var (candidate, nearest): (String, String?) = (folder, nil)
        while candidate.count > 1, realPath(candidate) != home {
            if nearest == nil, FileManager.default.fileExists(atPath: "\(candidate)/\(file)") { nearest = candidate }
            if FileManager.default.fileExists(atPath: "\(candidate)/.git") {
                return (nearest ?? candidate, candidate)
            }
            candidate = String(candidate[..<(candidate.lastIndex(of: "/") ?? candidate.startIndex)])
        }
        return (folder, folder)
    }

    /// Returns the path without symbolic links. A file that does not exist yet is found through its folder.
    private static func realPath(_ path: String) -> String {
        if let resolved = realpath(path, nil) {
            defer { free(resolved) }
            return String(cString: resolved)
        }
        guard let slash = path.lastIndex(of: "/"), slash > path.startIndex else { return path }
        return realPath(String(path[..<slash])) + path[slash...]
    }
}
