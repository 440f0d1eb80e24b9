import CLinux
import Glibc
import Synchronization

/// A serial executor on its own thread, for actors that make blocking system calls.
///
/// Such calls must not block Swift's thread pool. The thread lives as long as the process.
package final class ThreadExecutor: SerialExecutor {
    /// The executor for file access: fsync(2) may block for long.
    package static let files = ThreadExecutor(named: "patchbay-files")

    private let jobs = JobQueue()
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
        if jobs.add(job) { eventfd_write(wake.number, 1) }
    }

    private func run() -> Never {
        while true {
            var count: eventfd_t = 0
            eventfd_read(wake.number, &count)
            for job in jobs.drain() { job.runSynchronously(on: asUnownedSerialExecutor()) }
        }
    }
}

/// A FIFO queue of jobs for an executor thread.
struct JobQueue: ~Copyable, Sendable {
    private let jobs = Mutex<[UnownedJob]>([])

    /// Appends a job.
    ///
    /// - Returns: True if the queue was empty, so that the thread may have to be woken.
    func add(_ job: consuming ExecutorJob) -> Bool {
        let job = UnownedJob(job)
        return jobs.withLock { jobs in
            jobs.append(job)
            return jobs.count == 1
        }
    }

    /// Removes and returns all jobs. The caller must run them.
    func drain() -> [UnownedJob] {
        jobs.withLock { jobs in
            defer { jobs = [] }
            return jobs
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
        let name: String
        let body: @Sendable () -> Void
        init(_ name: String, _ body: @escaping @Sendable () -> Void) {
            self.name = name
            self.body = body
        }
    }
    var thread = pthread_t()
    let box = Unmanaged.passRetained(Box(name, body))
    let started = pthread_create(
        &thread,
        nil,
        { argument in
            guard let argument else { return nil }
            let box = Unmanaged<Box>.fromOpaque(argument).takeRetainedValue()
            CLinux_set_thread_name(String(box.name.prefix(15)))
            box.body()
            return nil
        },
        box.toOpaque()
    )
    precondition(started == 0, "no thread could be started: errno \(started)")
    pthread_detach(thread)
}

/// A thread that runs blocking calls one at a time, in order.
///
/// Unlike on a `ThreadExecutor`, a call can be abandoned: after a cancellation, the caller continues at once. The
/// thread lives as long as the process; store instances in a `static let`.
package final class BlockingCallThread: Sendable {
    private let queue = Mutex<[@Sendable () -> Void]>([])
    private let wake: CInt

    package init(named name: String) {
        wake = eventfd(0, CInt(EFD_CLOEXEC))
        precondition(wake >= 0, "eventfd failed: errno \(errno)")
        startThread(named: name) { [self] in run() }
    }

    /// Runs a call on the thread. If the task is cancelled before the call starts, the call is skipped. If it is
    /// cancelled later, the result is dropped.
    package func call<Value: Sendable>(_ body: @escaping @Sendable () throws -> Value) async throws -> Value {
        let promise = Promise<Value>()
        queue.withLock { queue in
            queue.append {
                if !promise.isCompleted { promise.complete(Result(catching: body)) }
            }
        }
        eventfd_write(wake, 1)
        return try await promise.value()
    }

    private func run() -> Never {
        while true {
            var count: eventfd_t = 0
            eventfd_read(wake, &count)
            let calls = queue.withLock { queue in
                defer { queue = [] }
                return queue
            }
            for call in calls { call() }
        }
    }
}
