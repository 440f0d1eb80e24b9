package import FoundationEssentials
import Glibc
package import Logging
import Model
import Synchronization

/// One JSON document that outlives the broker: after a crash either the old one or the new one is there, never half of one.
///
/// Runs on the files' own thread, because fsync(2) takes as long as the disk likes.
package actor StateFile<Value: Codable & Sendable> {
    private struct Document: Codable {
        let schema: Int
        let content: Value
    }

    package nonisolated var unownedExecutor: UnownedSerialExecutor { ThreadExecutor.files.asUnownedSerialExecutor() }

    private let directory: String
    private let path: String
    private let health: StateHealth?
    private let logger: Logger
    /// Why the file must not be written: there is one that can neither be read nor set aside.
    private var obstacle: String?

    /// - Parameters:
    ///   - name: The file's name without `.json`.
    ///   - directory: Exists and is ours alone.
    ///   - health: Where failures to write are reported.
    ///   - logger: Where a file that cannot be read is reported.
    package init(_ name: String, in directory: String, health: StateHealth? = nil, logger: Logger) {
        self.directory = directory
        self.health = health
        path = "\(directory)/\(name).json"
        self.logger = logger
    }

    /// What was written last; nil when nothing was.
    ///
    /// A file whose content is damaged never stops the broker and is never overwritten: it is set aside.
    /// - Parameter salvage: What can be made of the bytes of such a file.
    /// - Returns: What was written or salvaged.
    /// - Throws: `StateError.notRead` when the file is there and its bytes cannot be had; then it stays where it is, and
    ///   `write(_:)` does not replace it.
    package func read(salvage: (Data) -> Value? = { _ in nil }) throws(StateError) -> Value? {
        guard let data = try bytes() else { return nil }
        do {
            let document = try JSONCoding.decoder().decode(Document.self, from: data)
            guard document.schema == 1 else { throw StateError.laterSchema(document.schema) }
            return document.content
        } catch {
            setAside(because: "\(error)")
            return salvage(data)
        }
    }

    /// - Returns: Nil when there is no file.
    private func bytes() throws(StateError) -> Data? {
        let number = open(path, O_RDONLY | O_CLOEXEC)
        if number < 0, errno == ENOENT { return nil }
        do {
            try check(number, "open")
            let file = Descriptor(owning: number)
            var data = Data()
            let piece = UnsafeMutableRawBufferPointer.allocate(byteCount: 64 * 1_024, alignment: 16)
            defer { piece.deallocate() }
            while true {
                let count = Glibc.read(file.number, piece.baseAddress, piece.count)
                if count < 0, errno == EINTR { continue }
                try check(CInt(clamping: count), "read")
                if count == 0 { return data }
                data.append(contentsOf: piece[..<count])
            }
        } catch {
            obstacle = "the one that is there cannot be read: \(error)"
            throw .notRead(path: path, "\(error)")
        }
    }

    /// Replaces what is kept. When it returns, it is on the disk.
    ///
    /// - Throws: `StateError.notSaved`; then the file is as it was.
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
        if let obstacle { throw .notSaved(path: path, obstacle) }
        let fresh = "\(path).new"
        do {
            let data = try JSONCoding.encoder().encode(Document(schema: 1, content: value))
            try fill(fresh, with: data)
            try check(rename(fresh, path), "rename")
            // The name is in the directory's own data.
            let folder = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
            try check(folder, "open")
            defer { close(folder) }
            try check(fsync(folder), "fsync")
        } catch {
            unlink(fresh)
            throw .notSaved(path: path, "\(error)")
        }
    }

    private func setAside(because reason: String) {
        var aside = "\(path).unreadable"
        var number = 2
        while access(aside, F_OK) == 0 {
            aside = "\(path).unreadable-\(number)"
            number += 1
        }
        if rename(path, aside) != 0 { obstacle = "the one that is there cannot be read: \(reason)" }
        logger.error(
            "a state file cannot be read; starting without it",
            metadata: ["file": "\(path)", "set aside as": "\(obstacle == nil ? aside : "-")", "error": "\(reason)"]
        )
    }

    private func fill(_ fresh: String, with data: Data) throws {
        let number = open(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
        try check(number, "open")
        let file = Descriptor(owning: number)
        var rest = data[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.write(file.number, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            try check(CInt(clamping: count), "write")
            rest = rest.dropFirst(count)
        }
        try check(fsync(file.number), "fsync")
    }

    private func check(_ result: CInt, _ call: String) throws {
        guard result < 0 else { return }
        throw SocketError.failed(call: call, on: path, code: errno)
    }
}

/// Why a state file could not be read or written.
package enum StateError: Error, Hashable, Sendable {
    /// A later version of Patchbay wrote it.
    case laterSchema(Int)
    /// The file is there and as it was; its content may be whole.
    case notRead(path: String, String)
    /// The file is as it was.
    case notSaved(path: String, String)
}

extension StateError: CustomStringConvertible {
    package var description: String {
        switch self {
        case .laterSchema(let schema): "its schema is \(schema), and this version of Patchbay knows 1"
        case .notRead(let path, let reason):
            "\(path) could not be read: \(reason); nothing of it is lost; correct its owner, its mode or the disk, and start "
                + "the broker again"
        case .notSaved(let path, let reason):
            "\(path) could not be written: \(reason); make room or correct the folder's owner"
        }
    }
}

/// Knows which files of the state folder could not be written, until there is room again.
package actor StateHealth {
    package nonisolated var unownedExecutor: UnownedSerialExecutor { ThreadExecutor.files.asUnownedSerialExecutor() }

    /// As much as is written to see whether there is room again.
    private static let sample = 64 * 1_024

    private let directory: String
    /// The last failure of each file, by its path.
    private nonisolated let failures = Mutex<[String: String]>([:])

    /// - Parameter directory: Exists and is ours alone.
    package init(of directory: String) { self.directory = directory }

    /// Takes in how a write ended; nil is success.
    nonisolated func report(_ failure: StateError?, of path: String) {
        failures.withLock { $0[path] = failure?.description }
    }

    /// The failures as sentences, in the order of the paths; none when the folder can be written again.
    package func problems() -> [String] {
        let failures = failures.withLock { $0 }
        guard !failures.isEmpty else { return [] }
        if canWrite() {
            // A file that does not fit all the same is reported again by its next write.
            self.failures.withLock { current in for path in failures.keys { current[path] = nil } }
            return []
        }
        return failures.sorted { $0.key < $1.key }.map(\.value)
    }

    private func canWrite() -> Bool {
        let path = "\(directory)/room.new"
        let number = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0o600)
        guard number >= 0 else { return false }
        let file = Descriptor(owning: number)
        defer { unlink(path) }
        let bytes = [UInt8](repeating: 0, count: Self.sample)
        return write(file.number, bytes, bytes.count) == bytes.count && fsync(file.number) == 0
    }
}
