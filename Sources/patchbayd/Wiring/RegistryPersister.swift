import FoundationEssentials
import Glibc
import Logging
import Model
import Registry
import ServiceLifecycle
import SystemIO

/// The registry's persistent state.
struct RegistryState: Codable, Sendable {
    var revision: UInt64
    var records: [PersistedEndpoint]
    var retired: RetiredIDs?
}

/// Saves the registry after changes, so that IDs survive a restart.
///
/// After a failed write, for example on a full disk, the broker keeps running and retries.
struct RegistryPersister: Service {
    let registry: EndpointRegistry
    let file: StateFile<RegistryState>
    let logger: Logger
    /// Changes within this interval are saved together.
    static let coalescingInterval = Duration.milliseconds(200)
    /// The interval between attempts after a failed write.
    static let retryInterval = Duration.seconds(2)

    func run() async throws {
        try? await cancelWhenGracefulShutdown {
            while !Task.isCancelled {
                let changes = await registry.changes().changes
                var saved = try await save()
                for await change in changes where change.revision > saved {
                    // Collects further changes for the same write.
                    try await Task.sleep(for: Self.coalescingInterval)
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

    /// Saves the state and retries until success.
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
                // No event reports that a disk has free space again.
                try await Task.sleep(for: Self.retryInterval)
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

    /// Locks the directory.
    ///
    /// - Throws: `DaemonError`, naming the process that holds the lock.
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
