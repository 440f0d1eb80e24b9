import CLinux
import FoundationEssentials
import Glibc
import SystemIO

/// Ctrl-C in the middle of a run: nothing of it is left behind.
///
/// The programs need no care: the kernel kills each when this process ends.
enum Interruption {
    /// What a signal's handler may do is next to nothing (signal-safety(7)): it writes here, and a thread does the rest.
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
