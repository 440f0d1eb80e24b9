import CAvahi
import CLinux
import Glibc
import Synchronization
import SystemIO

/// The only thread that may use libavahi-client, as the executor of `AvahiEngine`.
///
/// A dedicated thread is needed because every constructor and destructor of libavahi-client is a blocking D-Bus round
/// trip. It usually takes 0.3 ms, and 25 s when the daemon hangs. Swift's thread pool and shared event loops must not
/// wait that long.
///
/// Thread safety: a mutex protects the state that other threads use. The poll object is created, used and freed on the
/// thread.
final class AvahiThreadExecutor: SerialExecutor {
    private struct State {
        var jobs: [UnownedJob] = []
        var thread: pthread_t?
        /// An eventfd watched by the poll; -1 once the thread has ended, because the number may have been reused.
        var wakeup: CInt
        var isStopping = false
        var waiters: [CheckedContinuation<Void, Never>] = []
    }

    private let state: Mutex<State>

    init() {
        let wakeup = eventfd(0, CInt(EFD_CLOEXEC | EFD_NONBLOCK))
        precondition(wakeup >= 0, "eventfd failed: errno \(errno)")
        state = Mutex(State(wakeup: wakeup))
    }

    deinit {
        let wakeup = state.withLock { $0.wakeup }
        if wakeup >= 0 { close(wakeup) }
    }

    /// Starts the thread.
    ///
    /// - Parameter runCycle: Called on the thread after each poll iteration with the poll object. The flag is true in
    ///   the last call, which must free all libavahi objects. Returns the time of the next call if no event arrives
    ///   first.
    func start(runCycle: @escaping @Sendable (AvahiPollPointer, Bool) -> ContinuousClock.Instant?) {
        startThread(named: "patchbay-avahi") { self.run(runCycle) }
    }

    /// Makes the thread run a cycle soon. Does nothing after the thread has ended.
    func wakeUp() { state.withLock { Self.wake($0) } }

    /// Makes the next cycle the last one.
    func stop() {
        state.withLock { state in
            state.isStopping = true
            Self.wake(state)
        }
    }

    /// Returns when the thread has freed everything and ended. There is no time limit.
    func ended() async {
        await withCheckedContinuation { continuation in
            let hasEnded = state.withLock { state in
                if state.wakeup >= 0 { state.waiters.append(continuation) }
                return state.wakeup < 0
            }
            if hasEnded { continuation.resume() }
        }
    }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        state.withLock { state in
            precondition(state.wakeup >= 0, "a job was enqueued after the end of the Avahi thread")
            state.jobs.append(job)
            Self.wake(state)
        }
    }

    func checkIsolated() { precondition(isIsolatingCurrentContext() == true, "not on the Avahi thread") }

    func isIsolatingCurrentContext() -> Bool? {
        state.withLock { $0.thread.map { pthread_equal($0, pthread_self()) != 0 } ?? false }
    }

    private static func wake(_ state: State) {
        guard state.wakeup >= 0 else { return }
        var one: UInt64 = 1
        // Fails only when the counter is full, and then the thread is already awake (eventfd(2)).
        _ = write(state.wakeup, &one, MemoryLayout.size(ofValue: one))
    }

    private func run(_ runCycle: (AvahiPollPointer, Bool) -> ContinuousClock.Instant?) {
        let wakeup = state.withLock { state in
            state.thread = pthread_self()
            return state.wakeup
        }
        guard let poll = avahi_simple_poll_new(), let api = avahi_simple_poll_get(poll) else {
            preconditionFailure("avahi_simple_poll_new is out of memory")
        }
        let watch = api.pointee.watch_new(
            api,
            wakeup,
            AVAHI_WATCH_IN,
            { _, descriptor, _, _ in
                var count: UInt64 = 0
                _ = read(descriptor, &count, MemoryLayout.size(ofValue: count))
            },
            nil
        )
        while true {
            let isLast = runJobs()
            let deadline = runCycle(AvahiPollPointer(api), isLast)
            if isLast { break }
            let failed = avahi_simple_poll_iterate(poll, Self.milliseconds(until: deadline))
            precondition(failed == 0, "poll failed: errno \(errno)")
        }
        api.pointee.watch_free(watch)
        avahi_simple_poll_free(poll)
        let waiters = state.withLock { state in
            close(state.wakeup)
            state.wakeup = -1
            return state.waiters
        }
        for waiter in waiters { waiter.resume() }
    }

    /// Runs the actor's jobs between two cycles, never inside a callback of libavahi. Returns true if the thread should
    /// stop.
    private func runJobs() -> Bool {
        while true {
            let (jobs, isStopping) = state.withLock { state in
                defer { state.jobs = [] }
                return (state.jobs, state.isStopping)
            }
            if jobs.isEmpty { return isStopping }
            for job in jobs { job.runSynchronously(on: asUnownedSerialExecutor()) }
        }
    }

    /// The timeout in ms, rounded up so that the cycle does not run just before the deadline; -1 means no timeout.
    private static func milliseconds(until deadline: ContinuousClock.Instant?) -> CInt {
        guard let deadline else { return -1 }
        let (seconds, attoseconds) = max(deadline - .now, .zero).components
        return CInt(clamping: seconds * 1_000 + (attoseconds + 999_999_999_999_999) / 1_000_000_000_000_000)
    }
}

/// The poll object on which libavahi-client creates its clients.
///
/// Thread safety: `AvahiThreadExecutor` creates it on its thread and passes it only to the actor that runs there.
struct AvahiPollPointer: @unchecked Sendable {
    let api: UnsafePointer<AvahiPoll>

    init(_ api: UnsafePointer<AvahiPoll>) { self.api = api }
}
