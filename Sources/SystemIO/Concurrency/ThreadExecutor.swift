import CLinux
import Glibc
import Synchronization

/// A serial executor on its own thread, for actors that make blocking system calls.
///
/// Such calls must not block Swift's thread pool. The thread lives as long as the process.
package final class ThreadExecutor: SerialExecutor {
    /// The executor for file access: fsync(2) may block for long.
    package static let files = ThreadExecutor(named: "patchbay-files")

    private let jobs = Mutex<[UnownedJob]>([])
    private let wake: Descriptor

    /// Starts the thread.
    ///
    /// - Parameter name: The thread name shown by `ps -L`, at most 15 bytes.
    package init(named name: String) {
        // The eventfd is blocking: the thread sleeps in read(2) until a job arrives.
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

/// Starts a thread for a loop that blocks in the kernel and must not block Swift's thread pool.
///
/// - Parameters:
///   - name: The thread name; `ps -L` shows at most 15 bytes (pthread_setname_np(3)).
///   - body: Runs on the thread, which ends with it.
package func startThread(named name: String, _ body: @escaping @Sendable () -> Void) {
    final class Box: Sendable {
        let body: @Sendable () -> Void
        init(_ body: @escaping @Sendable () -> Void) { self.body = body }
    }
    var thread = pthread_t()
    let box = Unmanaged.passRetained(
        Box {
            CLinux_set_thread_name(String(name.prefix(15)))
            body()
        }
    )
    let started = pthread_create(
        &thread,
        nil,
        { argument in
            if let argument { Unmanaged<Box>.fromOpaque(argument).takeRetainedValue().body() }
            return nil
        },
        box.toOpaque()
    )
    precondition(started == 0, "no thread could be started: errno \(started)")
    pthread_detach(thread)
}
