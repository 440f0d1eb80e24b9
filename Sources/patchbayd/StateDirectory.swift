import CLinux
import FoundationEssentials
import Glibc
import SystemIO

/// The folder for what must outlive a restart: nobody else's business, so mode 0700.
enum StateDirectory {
    /// Finds it and makes it: what was said, else systemd's `StateDirectory=`, else /var/lib/patchbay for root and
    /// `$XDG_STATE_HOME/patchbay` for everybody else.
    static func prepare(explicit: String?, environment: [String: String]) throws(DaemonError) -> String {
        let path = AbsolutePath.of(explicit ?? usual(environment))
        do {
            try FileManager.default.createDirectory(
                atPath: path,
                withIntermediateDirectories: true,
                attributes: [.posixPermissions: 0o700]
            )
        } catch {
            throw .stateDirectory(path: path, what: obstacle(to: path))
        }
        guard access(path, W_OK | X_OK) == 0 else {
            throw .stateDirectory(path: path, what: SocketError.words(for: errno))
        }
        return path
    }

    /// The first folder on the way that cannot be made, and why; FileManager keeps the error number to itself.
    private static func obstacle(to path: String) -> String {
        var folder = ""
        for part in path.split(separator: "/") {
            folder += "/\(part)"
            guard mkdir(folder, 0o700) != 0 else { continue }
            let code = errno
            var facts = stat()
            if code == EEXIST, stat(folder, &facts) == 0, facts.st_mode & S_IFMT == S_IFDIR { continue }
            if code == EEXIST { return "\(folder) is no folder" }
            return "\(folder) cannot be made: \(SocketError.words(for: code))"
        }
        return "it cannot be made"
    }

    private static func usual(_ environment: [String: String]) -> String {
        // systemd.exec(5): a list separated by colons.
        if let folder = environment["STATE_DIRECTORY"]?.split(separator: ":").first { return String(folder) }
        if geteuid() == 0 { return "/var/lib/patchbay" }
        return (environment["XDG_STATE_HOME"] ?? "\(environment["HOME"] ?? "/tmp")/.local/state") + "/patchbay"
    }
}
