import FoundationEssentials
import Glibc
import Model
import SystemIO

/// The directory for persistent state, with mode 0700.
enum StateDirectory {
    /// Returns the directory and creates it if missing.
    ///
    /// The order is: the explicit path, systemd's `StateDirectory=`, /var/lib/patchbay for root,
    /// `$XDG_STATE_HOME/patchbay` for other users.
    static func prepare(explicit: String?, environment: [String: String]) throws(DaemonError) -> String {
        let path = AbsolutePath.of(explicit ?? defaultPath(environment))
        do {
            try FileManager.default.createDirectory(
                atPath: path,
                withIntermediateDirectories: true,
                attributes: [.posixPermissions: 0o700]
            )
        } catch {
            throw .stateDirectory(path: path, reason: reasonForFailure(to: path))
        }
        guard access(path, W_OK | X_OK) == 0 else {
            throw .stateDirectory(path: path, reason: SocketError.message(for: errno))
        }
        return path
    }

    /// Names the first folder that cannot be created, and the reason. FileManager does not report the error number.
    private static func reasonForFailure(to path: String) -> String {
        var folder = ""
        for part in path.split(separator: "/") {
            folder += "/\(part)"
            guard mkdir(folder, 0o700) != 0 else { continue }
            let code = errno
            if code == EEXIST, FileStatus(atPath: folder)?.type == .folder { continue }
            if code == EEXIST { return "\(folder) is no folder" }
            return "\(folder) cannot be made: \(SocketError.message(for: code))"
        }
        return "it cannot be made"
    }

    private static func defaultPath(_ environment: [String: String]) -> String {
        // systemd.exec(5): a colon-separated list.
        if let folder = environment["STATE_DIRECTORY"]?.split(separator: ":").first { return String(folder) }
        if geteuid() == 0 { return "/var/lib/patchbay" }
        return (environment["XDG_STATE_HOME"] ?? "\(environment["HOME"] ?? "/tmp")/.local/state") + "/patchbay"
    }
}

/// The exclusive lock of a state directory. The kernel releases it when the process ends.
final class StateDirectoryLock: Sendable {
    private let descriptor: CInt

    /// Locks the directory. Throws `DaemonError`, naming the process that holds the lock.
    init(on directory: String) throws(DaemonError) {
        let path = "\(directory)/lock"
        let descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else {
            let reason = SocketError.message(for: errno)
            throw .stateDirectory(path: directory, reason: "its lock cannot be opened: \(reason)")
        }
        guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
            let code = errno
            defer { close(descriptor) }
            guard code == EWOULDBLOCK else {
                throw .stateDirectory(path: directory, reason: "it cannot be locked: \(SocketError.message(for: code))")
            }
            throw .stateDirectoryTaken(path: directory, holder: Self.holder(in: path))
        }
        self.descriptor = descriptor
        // The PID for the error message of another broker. The file is never removed: flock(2) locks the inode, so a
        // new file could be locked a second time.
        let line = Array("\(getpid())\n".utf8)
        _ = ftruncate(descriptor, 0)
        _ = pwrite(descriptor, line, line.count, 0)
    }

    deinit { close(descriptor) }

    private static func holder(in path: String) -> String? {
        guard let text = try? String(contentsOfFile: path, encoding: .utf8),
            let pid = Int32(text.prefix { $0 != "\n" }), pid > 0
        else { return nil }
        // comm is the program's name in proc(5).
        let name = try? String(contentsOfFile: "/proc/\(pid)/comm", encoding: .utf8)
        guard let name = name?.prefix(while: { $0 != "\n" }), !name.isEmpty else { return "process \(pid)" }
        return "\(name), process \(pid)"
    }
}
