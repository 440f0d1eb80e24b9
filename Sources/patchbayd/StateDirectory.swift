import FoundationEssentials
import Glibc
import Sockets

/// The folder for what must outlive a restart: nobody else's business, so mode 0700.
enum StateDirectory {
    /// Finds it and makes it: what was said, else systemd's `StateDirectory=`, else /var/lib/patchbay for root and
    /// `$XDG_STATE_HOME/patchbay` for everybody else.
    static func prepare(explicit: String?, environment: [String: String]) throws(DaemonError) -> String {
        let path = explicit ?? usual(environment)
        do {
            try FileManager.default.createDirectory(
                atPath: path,
                withIntermediateDirectories: true,
                attributes: [.posixPermissions: 0o700]
            )
        } catch {
            throw .stateDirectory(path: path, what: "it cannot be made")
        }
        guard access(path, W_OK | X_OK) == 0 else {
            throw .stateDirectory(path: path, what: SocketError.words(for: errno))
        }
        return path
    }

    private static func usual(_ environment: [String: String]) -> String {
        // systemd.exec(5): a list separated by colons.
        if let folder = environment["STATE_DIRECTORY"]?.split(separator: ":").first { return String(folder) }
        if geteuid() == 0 { return "/var/lib/patchbay" }
        return (environment["XDG_STATE_HOME"] ?? "\(environment["HOME"] ?? "/tmp")/.local/state") + "/patchbay"
    }
}
