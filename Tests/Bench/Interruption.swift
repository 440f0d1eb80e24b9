import CLinux
import FoundationEssentials
import Glibc
import SystemIO

/// Removes the scratch folder when a run is interrupted with Ctrl-C.
///
/// The kernel kills the started programs when this process ends.
enum Interruption {
    /// Wakes the cleanup thread. Signal handlers may call few functions (signal-safety(7)), so the handler only writes
    /// here.
    private static let wake = eventfd(0, CInt(EFD_CLOEXEC))

    static func watch(removing folder: String) {
        let wake = wake
        startThread(named: "bench-signals") {
            var count: eventfd_t = 0
            eventfd_read(wake, &count)
            try? FileManager.default.removeItem(atPath: folder)
            _exit(128 + SIGINT)
        }
        for number in [SIGINT, SIGTERM] { signal(number) { _ in eventfd_write(Interruption.wake, 1) } }
    }
}
