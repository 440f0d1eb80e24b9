import FoundationEssentials
import Glibc
import Sockets

/// Ctrl-C in the middle of a run: nothing of it is left behind.
///
/// The programs need no care: the kernel kills each when this process ends.
enum Interruption {
    /// Called before there are other threads, which inherit that the signals are blocked.
    static func watch(removing folder: String) {
        var signals = sigset_t()
        sigemptyset(&signals)
        sigaddset(&signals, SIGINT)
        sigaddset(&signals, SIGTERM)
        pthread_sigmask(SIG_BLOCK, &signals, nil)
        startThread(named: "bench-signals") { [signals] in
            var signals = signals
            var signal: CInt = 0
            sigwait(&signals, &signal)
            try? FileManager.default.removeItem(atPath: folder)
            _exit(128 + signal)
        }
    }
}
