import CLinux
import Glibc
import SystemIO
import Synchronization

/// One run of usbmuxd, as long as we hear it: DeviceIDs mean something within it and nothing beyond.
///
/// Owns the socket on which usbmuxd was told to Listen. A run that ends has closed that socket before the next one can
/// take over usbmuxd's address (it holds a lock file until it has dropped its clients), and the kernel shows that at once,
/// whether or not anybody has read up to the end. So a stream that was opened with a DeviceID of this epoch, and is
/// vouched for after usbmuxd said yes, leads to the phone that had this DeviceID.
final class UsbmuxdSession: Sendable {
    private let socket: Descriptor
    private let daemon: pid_t?
    private let isEnded = Atomic(false)

    /// - Parameter socket: Has had "ok" to its Listen.
    init(listeningOn socket: consuming Descriptor) {
        daemon = Self.daemon(behind: socket.number)
        self.socket = socket
    }

    /// For reading, by one task, while it holds the epoch.
    var number: CInt { socket.number }

    /// False as soon as usbmuxd has hung up, or we have stopped listening.
    var isAlive: Bool {
        if isEnded.load(ordering: .acquiring) { return false }
        let hangUp = Int16(truncatingIfNeeded: EPOLLRDHUP.rawValue)
        var state = pollfd(fd: socket.number, events: hangUp, revents: 0)
        return poll(&state, 1, 0) == 0
    }

    func end() { isEnded.store(true, ordering: .releasing) }

    /// Whether a stream, opened and answered before this is asked, is one of this run.
    func vouches(for stream: CInt) -> Bool {
        // The process first, the sign of life last: it must hold at a moment after the answer came.
        Self.daemon(behind: stream) == daemon && isAlive
    }

    /// The process that listens behind a unix socket (SO_PEERCRED, unix(7)); nil for TCP.
    private static func daemon(behind number: CInt) -> pid_t? {
        // struct ucred: pid, uid, gid; glibc shows it only with _GNU_SOURCE.
        var credentials: [CInt] = [0, 0, 0]
        var size = socklen_t(3 * MemoryLayout<CInt>.size)
        let status = getsockopt(number, SOL_SOCKET, SO_PEERCRED, &credentials, &size)
        return status == 0 && credentials[0] != 0 ? credentials[0] : nil
    }
}
