import FoundationEssentials
import Glibc
import SystemIO

/// The right to be the only broker that uses a state folder; the kernel takes it back when the process ends, however it does.
final class StateLock: Sendable {
    private let descriptor: CInt

    /// - Throws: `DaemonError`, naming the process that holds the lock.
    init(on directory: String) throws(DaemonError) {
        let path = "\(directory)/lock"
        let descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else {
            throw .stateDirectory(path: directory, what: "its lock cannot be opened: \(SocketError.words(for: errno))")
        }
        guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
            let code = errno
            defer { close(descriptor) }
            guard code == EWOULDBLOCK else {
                throw .stateDirectory(path: directory, what: "it cannot be locked: \(SocketError.words(for: code))")
            }
            throw .stateDirectoryTaken(path: directory, holder: Self.holder(in: path))
        }
        self.descriptor = descriptor
        // For whoever is turned away. The file stays: one that was removed could be locked twice (flock(2) is on the inode).
        let line = Array("\(getpid())\n".utf8)
        _ = ftruncate(descriptor, 0)
        _ = pwrite(descriptor, line, line.count, 0)
    }

    deinit { close(descriptor) }

    private static func holder(in path: String) -> String? {
        guard let text = try? String(contentsOfFile: path, encoding: .utf8),
            let pid = Int32(text.prefix { $0 != "\n" }), pid > 0
        else { return nil }
        // comm is what proc(5) calls the program.
        let name = try? String(contentsOfFile: "/proc/\(pid)/comm", encoding: .utf8)
        guard let name = name?.prefix(while: { $0 != "\n" }), !name.isEmpty else { return "process \(pid)" }
        return "\(name), process \(pid)"
    }
}
