import CLinux
import Glibc
import Synchronization

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

/// Jobs that a thread of our own is to run, in the order in which they came.
struct JobQueue: ~Copyable, Sendable {
    private let jobs = Mutex<[UnownedJob]>([])

    var isEmpty: Bool { jobs.withLock { $0.isEmpty } }

    /// - Returns: Whether no other waits, so that the thread may have to be woken.
    func add(_ job: consuming ExecutorJob) -> Bool {
        let job = UnownedJob(job)
        return jobs.withLock { jobs in
            jobs.append(job)
            return jobs.count == 1
        }
    }

    /// All that wait. Whoever takes them runs them.
    func takeAll() -> [UnownedJob] {
        jobs.withLock { jobs in
            defer { jobs = [] }
            return jobs
        }
    }
}

/// Starts a thread of our own, for loops that block in the kernel and so must not sit in Swift's pool.
///
/// - Parameters:
///   - name: At most 15 bytes are shown by `ps -L` (pthread_setname_np(3)).
///   - body: What the thread does; the thread ends with it.
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

/// A thread of its own for calls that block, one at a time, in order.
///
/// Unlike an actor on a `ThreadExecutor`, a call can be given up: its caller goes on at once, whatever the call does. It
/// lives as long as the process; make one as a `static let`.
package final class BlockingCallThread: Sendable {
    private let queue = Mutex<[@Sendable () -> Void]>([])
    private let bell: CInt

    package init(named name: String) {
        bell = eventfd(0, CInt(EFD_CLOEXEC))
        precondition(bell >= 0, "eventfd failed: errno \(errno)")
        startThread(named: name) { [self] in run() }
    }

    /// Runs a call there. Cancelled before its turn it is never made; cancelled during it, its value is dropped.
    package func call<Value: Sendable>(_ body: @escaping @Sendable () throws -> Value) async throws -> Value {
        let promise = Promise<Value>()
        queue.withLock { queue in
            queue.append {
                if !promise.isSettled { promise.settle(Result(catching: body)) }
            }
        }
        eventfd_write(bell, 1)
        return try await promise.value()
    }

    private func run() -> Never {
        while true {
            var count: eventfd_t = 0
            eventfd_read(bell, &count)
            let calls = queue.withLock { queue in
                defer { queue = [] }
                return queue
            }
            for call in calls { call() }
        }
    }
}
