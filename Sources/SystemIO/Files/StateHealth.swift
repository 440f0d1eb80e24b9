import Glibc
import Synchronization

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
