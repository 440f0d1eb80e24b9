import CLinux
import Glibc
import Synchronization

/// A thread that an actor is pinned to when its work blocks in the kernel, so that Swift's pool never does.
///
/// It lives as long as the process.
package final class SerialThread: SerialExecutor {
    /// The one for files: fsync(2) takes as long as the disk likes.
    package static let files = SerialThread(named: "patchbay-files")

    private let jobs = Mutex<[UnownedJob]>([])
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
        let job = UnownedJob(job)
        let isFirst = jobs.withLock { jobs in
            jobs.append(job)
            return jobs.count == 1
        }
        if isFirst { eventfd_write(wake.number, 1) }
    }

    private func run() -> Never {
        while true {
            var count: eventfd_t = 0
            eventfd_read(wake.number, &count)
            let batch = jobs.withLock { jobs in
                defer { jobs = [] }
                return jobs
            }
            for job in batch { job.runSynchronously(on: asUnownedSerialExecutor()) }
        }
    }
}
