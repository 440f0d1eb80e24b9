package import FoundationEssentials
import Glibc
package import Logging
import Model
import Synchronization

/// One JSON document in the state directory, replaced atomically: after a crash, the file has the old or the new
/// content.
///
/// Runs on the file thread because fsync(2) may block for long.
package actor StateFile<Value: Codable & Sendable> {
    private struct Document: Codable {
        let schema: Int
        let content: Value
    }

    package nonisolated var unownedExecutor: UnownedSerialExecutor { ThreadExecutor.files.asUnownedSerialExecutor() }

    private let path: String
    private let health: StateFileHealthTracker?
    private let logger: Logger
    /// The reason why the file must not be overwritten: the existing file can be neither read nor renamed.
    private var unwritableReason: String?

    /// Creates a handle; does not access the disk.
    ///
    /// - Parameters:
    ///   - name: The file name without `.json`.
    ///   - directory: An existing directory that only the broker uses.
    ///   - health: Records failed writes.
    ///   - logger: Logs unreadable files.
    package init(_ name: String, in directory: String, health: StateFileHealthTracker? = nil, logger: Logger) {
        self.health = health
        path = "\(directory)/\(name).json"
        self.logger = logger
    }

    /// Returns the saved value; nil if there is none.
    ///
    /// A damaged file does not stop the broker. The file is renamed, never overwritten.
    /// - Parameter salvage: Recovers a value from the bytes of a damaged file.
    /// - Returns: The saved or the recovered value.
    /// - Throws: `StateError.notRead` if the file exists and its bytes cannot be read. The file then stays in place,
    ///   and `write(_:)` fails.
    package func read(salvage: (Data) -> Value? = { _ in nil }) throws(StateError) -> Value? {
        guard let data = try bytes() else { return nil }
        do {
            let document = try JSONCoding.decoder().decode(Document.self, from: data)
            if document.schema == 1 { return document.content }
            // A later version of Patchbay wrote the file.
            renameDamagedFile(because: "its schema is \(document.schema), and this version of Patchbay knows 1")
        } catch {
            renameDamagedFile(because: "\(error)")
        }
        return salvage(data)
    }

    /// Reads the file.
    ///
    /// - Returns: Nil if the file does not exist.
    private func bytes() throws(StateError) -> Data? {
        let number = open(path, O_RDONLY | O_CLOEXEC)
        if number < 0, errno == ENOENT { return nil }
        do {
            try SocketError.check(number, "open", on: path)
            let file = Descriptor(owning: number)
            var data = Data()
            let chunk = UnsafeMutableRawBufferPointer.allocate(byteCount: 64 * 1_024, alignment: 16)
            defer { chunk.deallocate() }
            while true {
                let count = Glibc.read(file.number, chunk.baseAddress, chunk.count)
                if count < 0, errno == EINTR { continue }
                try SocketError.check(CInt(clamping: count), "read", on: path)
                if count == 0 { return data }
                data.append(contentsOf: chunk[..<count])
            }
        } catch {
            unwritableReason = "the existing file cannot be read: \(error)"
            throw .notRead(path: path, "\(error)")
        }
    }

    /// Replaces the saved value. Returns after the file is on disk.
    ///
    /// - Throws: `StateError.notSaved`; the file is then unchanged.
    package func write(_ value: Value) throws(StateError) {
        do {
            try replace(with: value)
            health?.report(nil, of: path)
        } catch {
            health?.report(error, of: path)
            throw error
        }
    }

    private func replace(with value: Value) throws(StateError) {
        if let unwritableReason { throw .notSaved(path: path, unwritableReason) }
        do {
            try AtomicFile.replace(path, with: try JSONCoding.encoder().encode(Document(schema: 1, content: value)))
        } catch {
            throw .notSaved(path: path, "\(error)")
        }
    }

    private func renameDamagedFile(because reason: String) {
        let newPath = AtomicFile.unusedPath("\(path).unreadable")
        if rename(path, newPath) != 0 { unwritableReason = "the existing file cannot be read: \(reason)" }
        logger.error(
            "a state file cannot be read; starting without it",
            metadata: [
                "file": "\(path)", "renamed to": "\(unwritableReason == nil ? newPath : "-")", "error": "\(reason)",
            ]
        )
    }
}

/// The reason why a state file could not be read or written.
package enum StateError: Error, Hashable, Sendable {
    /// The file exists, is unchanged, and may be intact.
    case notRead(path: String, String)
    /// The file is unchanged.
    case notSaved(path: String, String)
}

extension StateError: CustomStringConvertible {
    package var description: String {
        switch self {
        case .notRead(let path, let reason):
            "\(path) could not be read: \(reason); the file is unchanged; correct its owner, its mode or the disk, "
                + "and start the broker again"
        case .notSaved(let path, let reason):
            "\(path) could not be written: \(reason); make room or correct the folder's owner"
        }
    }
}

/// Tracks the state files that could not be written, until the state directory is writable again.
package actor StateFileHealthTracker {
    package nonisolated var unownedExecutor: UnownedSerialExecutor { ThreadExecutor.files.asUnownedSerialExecutor() }

    /// The size in bytes of the test write that checks for free space.
    private static let sample = 64 * 1_024

    private let directory: String
    /// The last failure of each file, by path.
    private nonisolated let failures = Mutex<[String: String]>([:])

    /// Creates a tracker.
    ///
    /// - Parameter directory: An existing directory that only the broker uses.
    package init(of directory: String) { self.directory = directory }

    /// Records the result of a write; nil is success.
    nonisolated func report(_ failure: StateError?, of path: String) {
        failures.withLock { $0[path] = failure?.description }
    }

    /// Returns the failures as messages, sorted by path; empty if the directory is writable again.
    package func problems() -> [String] {
        let failures = failures.withLock { $0 }
        guard !failures.isEmpty else { return [] }
        if canWrite() {
            // A file that still does not fit is recorded again by its next write.
            self.failures.withLock { current in for path in failures.keys { current[path] = nil } }
            return []
        }
        return failures.sorted { $0.key < $1.key }.map(\.value)
    }

    /// Tests the directory by writing and syncing a temporary file.
    private func canWrite() -> Bool {
        let path = "\(directory)/room.new"
        defer { unlink(path) }
        return (try? AtomicFile.create(path, with: Data(count: Self.sample))) != nil
    }
}
