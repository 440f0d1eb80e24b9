import CLinux
import Glibc
import SystemIO

/// Tells when something happens to one name in a directory: how usbmuxd's socket is noticed the moment it is made.
///
/// libusbmuxd's way, to try first and to watch then, misses what happens between; `arm` comes first here. Does nothing,
/// for ever, where inotify(7) or the directory is not to be had: whoever waits has another reason to wake up.
struct DirectoryWatcher: Sendable {
    private static let mask = UInt32(IN_CREATE | IN_MOVED_TO | IN_ATTRIB)

    private final class Queue: Sendable {
        let descriptor: Descriptor
        init(_ number: CInt) { descriptor = Descriptor(owning: number) }
    }

    private let directory: String
    private let name: [UInt8]
    private let queue: Queue?

    init(path: String) {
        let slash = path.lastIndex(of: "/") ?? path.startIndex
        directory = slash == path.startIndex ? "/" : String(path[..<slash])
        name = Array(path[slash...].drop { $0 == "/" }.utf8)
        let number = inotify_init1(CInt(IN_NONBLOCK) | CInt(IN_CLOEXEC))
        queue = number >= 0 ? Queue(number) : nil
    }

    /// Watches from now on, again if the directory was removed and made anew. True when something has happened since the
    /// last look.
    func arm() -> Bool {
        guard let queue else { return false }
        let happened = drain(queue)
        inotify_add_watch(queue.descriptor.number, directory, Self.mask)
        return happened
    }

    /// Returns when something happens. One task at a time may wait. Throws `CancellationError`.
    func change() async throws {
        guard let queue else {
            return try await Promise<Void>().value()
        }
        repeat {
            try await Poller.shared.wait(for: .readable, of: queue.descriptor.number)
        } while !drain(queue)
    }

    /// Reads what is there; true when some of it is about the name.
    private func drain(_ queue: Queue) -> Bool {
        var isFound = false
        var buffer = [UInt8](repeating: 0, count: 4096)
        while true {
            let count = read(queue.descriptor.number, &buffer, buffer.count)
            guard count > 0 else { return isFound }
            var offset = 0
            // struct inotify_event: four words, the last of them the length of the name that follows, padded with zeroes.
            while offset + 16 <= count {
                let length = buffer.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: offset + 12, as: UInt32.self) }
                let text = buffer[min(offset + 16, count)..<min(offset + 16 + Int(length), count)]
                if text.prefix(while: { $0 != 0 }).elementsEqual(name) { isFound = true }
                offset += 16 + Int(length)
            }
        }
    }
}

/// How long to wait between two attempts to reach usbmuxd: short at first, a second in the long run.
///
/// Short at first, because a socket appears in its directory when it is bound, a moment before it listens.
struct Backoff: Sendable {
    private static let first = Duration.milliseconds(5)
    private static let last = Duration.seconds(1)

    private(set) var length = first

    mutating func reset() { length = Self.first }

    /// Waits, each time twice as long; true when the watch told of a change before that. Ends early when cancelled.
    mutating func wait(orChangeOf watch: DirectoryWatcher?, clock: any Clock<Duration>) async -> Bool {
        let length = length
        self.length = min(length * 2, Self.last)
        return await withTaskGroup(of: Bool.self) { group in
            group.addTask {
                try? await clock.sleep(for: length)
                return false
            }
            if let watch {
                group.addTask {
                    do {
                        try await watch.change()
                        return true
                    } catch {
                        return false
                    }
                }
            }
            defer { group.cancelAll() }
            return await group.next() ?? false
        }
    }
}
