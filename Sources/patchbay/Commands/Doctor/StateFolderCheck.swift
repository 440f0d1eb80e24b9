import FoundationEssentials
import Glibc
import Model
import SystemIO

/// Checks that only the broker's user can read and change the state folder, which has grants and secrets.
struct StateFolderCheck {
    let path: String

    /// Returns the state folder: the configured one, that of the service, or that of this user.
    ///
    /// - Parameters:
    ///   - configured: The value of `broker.state_directory`; nil for the default.
    ///   - socket: The path of the broker's socket. The service has its socket in /run/patchbay.
    ///   - user: The user that runs the broker.
    ///   - environment: The environment, for `XDG_STATE_HOME` and `HOME`.
    /// - Returns: The path; nil if the environment has no home folder.
    static func path(
        configured: String?,
        socket: String,
        user: UInt32 = geteuid(),
        environment: [String: String]
    ) -> String? {
        if let configured { return configured }
        if socket.hasPrefix("/run/patchbay/") || user == 0 { return "/var/lib/patchbay" }
        if let folder = environment["XDG_STATE_HOME"], folder.hasPrefix("/") { return "\(folder)/patchbay" }
        return environment["HOME"].map { "\($0)/.local/state/patchbay" }
    }

    func run() -> Check {
        guard let status = Self.status(of: path) else {
            return errno == ENOENT
                ? .ok("state", "\(path) does not exist yet; the broker creates it")
                : .ok("state", "\(path) belongs to another user; run the check with sudo to include it")
        }
        // A command such as chmod would change the folder that the link leads to.
        guard status.type != .link else {
            return .warn(
                "state",
                "\(path) is a symbolic link, so its folder is not checked",
                try: "set broker.state_directory to the folder itself"
            )
        }
        guard status.isPrivate else {
            let mode = status.mode & 0o777
            let detail = "\(path) has mode 0\(String(mode, radix: 8)), so other users can open it"
            let hint = "sudo chmod 0700 \(path.shellQuoted)"
            // The broker refuses a folder that others can write.
            return mode & 0o022 == 0 ? .warn("state", detail, try: hint) : .fail("state", detail, try: hint)
        }
        guard let names = try? FileManager.default.contentsOfDirectory(atPath: path) else {
            return .ok("state", "\(path) has mode 0700 and belongs to user \(status.owner)")
        }
        if let exposed = names.sorted().first(where: { Self.isExposed("\(path)/\($0)") }) {
            return .fail(
                "state",
                "\(path)/\(exposed) can be opened by other users",
                try: "sudo chmod -R go= \(path.shellQuoted)"
            )
        }
        let foreign = names.sorted().first { Self.status(of: "\(path)/\($0)")?.owner != status.owner }
        if let foreign {
            return .fail(
                "state",
                "\(path)/\(foreign) belongs to another user than the folder, so the broker cannot write it",
                try: "sudo chown -R \(status.owner) \(path.shellQuoted)"
            )
        }
        return .ok("state", "\(path) and its files belong to user \(status.owner) only")
    }

    private static func status(of path: String) -> FileStatus? { FileStatus(atPath: path, followsLinks: false) }

    private static func isExposed(_ path: String) -> Bool {
        // The mode of a symbolic link has no effect.
        status(of: path).map { $0.type != .link && !$0.isPrivate } ?? false
    }
}
