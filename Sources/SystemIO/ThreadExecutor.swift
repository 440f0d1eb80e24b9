import CLinux
import Glibc

/// A thread that an actor is pinned to when its work blocks in the kernel, so that Swift's pool never does.
///
/// It lives as long as the process.
package final class ThreadExecutor: SerialExecutor {
    /// The one for files: fsync(2) takes as long as the disk likes.
    package static let files = ThreadExecutor(named: "patchbay-files")

    private let jobs = JobQueue()
    private let wake: Descriptor

    /// - Parameter name: What `ps -L` shows, at most 15 bytes.
    package init(named name: String) {
        // A blocking eventfd: the thread sleeps in read(2) until there is a job.
        let number = eventfd(0, CInt(EFD_CLOEXEC))
        precondition(number >= 0, "eventfd failed: errno \(errno)")
        wake = Descriptor(owning: number)
        startThread(named: name) { [self] in run() }
    }

    package func enqueue(_ job: consuming ExecutorJob) {
        if jobs.add(job) { eventfd_write(wake.number, 1) }
    }

    private func run() -> Never {
        while true {
            var count: eventfd_t = 0
            eventfd_read(wake.number, &count)
            for job in jobs.takeAll() { job.runSynchronously(on: asUnownedSerialExecutor()) }
        }
    }
}
