import CLinux
import Glibc
import SystemIO

/// Reports changes to one name in a directory. Detects the creation of usbmuxd's socket.
///
/// libusbmuxd tries to connect before it watches and misses changes in between. Here `arm` comes first. If inotify(7)
/// or the directory is unavailable, `change` never returns, so the caller needs a timeout.
final class DirectoryWatcher: Sendable {
    private static let mask = UInt32(IN_CREATE | IN_MOVED_TO | IN_ATTRIB)

    private let directory: String
    private let name: [UInt8]
    /// The queue of inotify(7); negative if there is none.
    private let queue: Descriptor

    init(path: String) {
        let slash = path.lastIndex(of: "/") ?? path.startIndex
        directory = slash == path.startIndex ? "/" : String(path[..<slash])
        name = Array(path[slash...].drop { $0 == "/" }.utf8)
        queue = Descriptor(owning: inotify_init1(CInt(IN_NONBLOCK) | CInt(IN_CLOEXEC)))
    }

    /// Starts watching, again if the directory was removed and recreated.
    ///
    /// - Returns: True if the name changed since the last call; nil if the directory cannot be watched.
    func arm() -> Bool? {
        let happened = drain()
        return inotify_add_watch(queue.number, directory, Self.mask) >= 0 ? happened : nil
    }

    /// Returns when the name changes. Only one task may wait at a time. Throws `CancellationError`.
    func change() async throws {
        guard queue.number >= 0 else { return try await Promise<Void>().value() }
        repeat { try await Poller.shared.wait(for: .readable, of: queue.number) } while !drain()
    }

    /// Reads all pending events. Returns true if one of them concerns the name.
    private func drain() -> Bool {
        var isFound = false
        var buffer = [UInt8](repeating: 0, count: 4096)
        while true {
            let count = read(queue.number, &buffer, buffer.count)
            guard count > 0 else { return isFound }
            var offset = 0
            // struct inotify_event: four words, then the name padded with zeros. The last word is the length of the
            // name.
            while offset + 16 <= count {
                let length = buffer.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: offset + 12, as: UInt32.self) }
                let text = buffer[min(offset + 16, count)..<min(offset + 16 + Int(length), count)]
                if text.prefix(while: { $0 != 0 }).elementsEqual(name) { isFound = true }
                offset += 16 + Int(length)
            }
        }
    }
}
