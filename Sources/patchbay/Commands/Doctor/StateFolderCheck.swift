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
                ? check(.ok, "\(path) does not exist yet; the broker creates it")
                : check(.ok, "\(path) belongs to another user; run the check with sudo to include it")
        }
        // A command such as chmod would change the folder that the link leads to.
        guard status.type != .link else {
            return check(
                .warn,
                "\(path) is a symbolic link, so its folder is not checked",
                hint: "set broker.state_directory to the folder itself"
            )
        }
        guard status.isPrivate else {
            let mode = status.mode & 0o777
            return check(
                // The broker refuses a folder that others can write.
                mode & 0o022 == 0 ? .warn : .fail,
                "\(path) has mode 0\(String(mode, radix: 8)), so other users can open it",
                hint: "sudo chmod 0700 \(path.shellQuoted)"
            )
        }
        guard let names = try? FileManager.default.contentsOfDirectory(atPath: path) else {
            return check(.ok, "\(path) has mode 0700 and belongs to user \(status.owner)")
        }
        if let exposed = names.sorted().first(where: { Self.isExposed("\(path)/\($0)") }) {
            return check(
                .fail,
                "\(path)/\(exposed) can be opened by other users",
                hint: "sudo chmod -R go= \(path.shellQuoted)"
            )
        }
        let foreign = names.sorted().first { Self.status(of: "\(path)/\($0)")?.owner != status.owner }
        if let foreign {
            return check(
                .fail,
                "\(path)/\(foreign) belongs to another user than the folder, so the broker cannot write it",
                hint: "sudo chown -R \(status.owner) \(path.shellQuoted)"
            )
        }
        return check(.ok, "\(path) and its files belong to user \(status.owner) only")
    }

    private static func status(of path: String) -> FileStatus? { FileStatus(atPath: path, followsLinks: false) }

    private static func isExposed(_ path: String) -> Bool {
        // The mode of a symbolic link has no effect.
        status(of: path).map { $0.type != .link && !$0.isPrivate } ?? false
    }

    private func check(_ verdict: Check.Verdict, _ detail: String, hint: String? = nil) -> Check {
        Check(name: "state", verdict: verdict, detail: detail, hint: hint)
    }
}
