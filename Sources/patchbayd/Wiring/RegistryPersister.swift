import CLinux
import FoundationEssentials
import Glibc
import Logging
import Model
import Registry
import ServiceLifecycle
import SystemIO

/// What a run of the broker leaves to the next one.
struct RegistryState: Codable, Sendable {
    var revision: UInt64
    var records: [PersistedEndpoint]
    var retired: RetiredIDs?
}

/// Keeps the registry's file up to date, so that ids outlive a restart.
///
/// A full disk stops nobody: the broker goes on, and what could not be written is written when there is room.
struct RegistryPersister: Service {
    let registry: EndpointRegistry
    let file: StateFile<RegistryState>
    let logger: Logger
    /// How long changes gather before they are written together.
    static let pause = Duration.milliseconds(200)
    /// Between two tries to write.
    static let retryPause = Duration.seconds(2)

    func run() async throws {
        try? await cancelWhenGracefulShutdown {
            while !Task.isCancelled {
                let (_, changes) = await registry.changes()
                var saved = try await save()
                for await change in changes where change.revision > saved {
                    // Not a wait for something: what comes within the pause is written with it.
                    try await Task.sleep(for: Self.pause)
                    saved = try await save()
                }
                try Task.checkCancellation()
            }
        }
        do {
            _ = try await write()
        } catch {
            logger.error("the last changes of the endpoints are lost", metadata: ["reason": "\(error)"])
        }
    }

    /// Tries until it is done.
    ///
    /// - Throws: `CancellationError`.
    private func save() async throws -> UInt64 {
        var isFailing = false
        while true {
            do {
                let revision = try await write()
                if isFailing { logger.notice("the endpoints are saved again") }
                return revision
            } catch {
                if !isFailing { logger.error("the endpoints cannot be saved now", metadata: ["reason": "\(error)"]) }
                isFailing = true
                // No event tells that a disk has room again.
                try await Task.sleep(for: Self.retryPause)
            }
        }
    }

    private func write() async throws -> UInt64 {
        let state = RegistryState(
            revision: await registry.revision,
            records: await registry.records,
            retired: await registry.retired
        )
        try await file.write(state)
        return state.revision
    }
}

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
