import FoundationEssentials
import Glibc
import Logging
import Model
import Sockets

/// One JSON document that outlives the broker: either the old one or the new one is there after a crash, never half of one.
///
/// Runs on the files' own thread, because fsync(2) takes as long as the disk likes.
actor StateFile<Value: Codable & Sendable> {
    private struct Document: Codable {
        var schema = 1
        let content: Value
    }

    nonisolated var unownedExecutor: UnownedSerialExecutor { SerialThread.files.asUnownedSerialExecutor() }

    private let path: String
    private let logger: Logger

    init(_ name: String, in directory: String, logger: Logger) {
        path = "\(directory)/\(name).json"
        self.logger = logger
    }

    /// What was written last; nil when nothing was. A file that cannot be read is set aside, not overwritten.
    func read() -> Value? {
        guard let data = FileManager.default.contents(atPath: path) else { return nil }
        do {
            return try Wire.decoder().decode(Document.self, from: data).content
        } catch {
            let aside = "\(path).unreadable"
            rename(path, aside)
            logger.error(
                "a state file cannot be read and was set aside; starting without it",
                metadata: ["file": "\(path)", "kept": "\(aside)", "error": "\(error)"]
            )
            return nil
        }
    }

    /// - Throws: `DaemonError.stateDirectory`.
    func write(_ value: Value) throws {
        let data = try Wire.encoder().encode(Document(content: value))
        let fresh = "\(path).new"
        let descriptor = open(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw failure("open") }
        defer { close(descriptor) }
        var rest = data[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
            guard count > 0 else { throw failure("write") }
            rest = rest.dropFirst(count)
        }
        guard fsync(descriptor) == 0 else { throw failure("fsync") }
        guard rename(fresh, path) == 0 else { throw failure("rename") }
    }

    private func failure(_ call: String) -> DaemonError {
        .stateDirectory(path: path, what: "\(call): \(SocketError.words(for: errno))")
    }
}
