import CLinux
import Glibc
import Synchronization

/// Waits for descriptors on one thread, so that any number of tasks can await readiness.
///
/// It is also an executor: a task that prefers it goes on where its descriptor was found ready, without a thread being woken
/// (`withTaskExecutorPreference(Poller.shared)`). Such a task must never block.
///
/// Why not SwiftNIO: a stream to a phone begins as a request to usbmuxd and goes on as the app's own bytes, in another
/// owner's hands, and NIO gives no descriptor back (2.101 has only `takingOwnershipOfDescriptor`).
///
/// Thread safety: the epoll descriptor may be used from any thread (epoll(7)); the table of waits is behind a mutex.
package final class Poller: Sendable {
    package enum Readiness: Sendable {
        case readable
        case writable
        /// The other end is gone for good: a reset, or both directions ended. A mere half-close is not.
        case hungUp
    }

    /// The one for the whole process: waiting costs no CPU, so there is no reason for two.
    package static let shared = Poller()

    /// A descriptor was not ready in time.
    private struct TimeIsOver: Error {}

    /// How many times the jobs that jobs bring about have their turn before the descriptors are looked at again.
    private static let patience = 32
    /// The place of `wake` in epoll, where no wait can be.
    private static let wakeToken: UInt64 = 0

    let jobs = JobQueue()
    private let epoll: CInt
    private let wake: CInt
    private let waits = Mutex(PollerWaiters())
    private let thread = Mutex<pthread_t?>(nil)

    private init() {
        epoll = epoll_create1(CInt(EPOLL_CLOEXEC))
        wake = eventfd(0, CInt(EFD_NONBLOCK) | CInt(EFD_CLOEXEC))
        precondition(epoll >= 0 && wake >= 0, "epoll_create1 or eventfd failed: errno \(errno)")
        var event = epoll_event()
        event.events = EPOLLIN.rawValue
        event.data.u64 = Self.wakeToken
        epoll_ctl(epoll, EPOLL_CTL_ADD, wake, &event)
        startThread(named: "patchbay-poll") { [self] in run() }
    }

    /// Returns when the descriptor is ready, or at once in error states, which the next read or write reports.
    ///
    /// One task at a time may wait for one descriptor, and its owner must outlive the wait. The kernel has forgotten the
    /// descriptor when this returns or throws, so that its number may be closed and used again at once.
    /// - Throws: `CancellationError`; `SocketError` when the kernel watches no more descriptors (ENOSPC, ENOMEM), when another
    ///   task waits for this descriptor (EEXIST), or when its number is not open (EBADF).
    package func wait(for readiness: Readiness, of descriptor: CInt) async throws {
        try await wait { token, continuation in arm(token, descriptor, continuation, readiness, until: nil) }
    }

    /// The same, until a time, to the millisecond: one wait where `withDeadline` would take two, and tasks for both.
    ///
    /// - Returns: False when the time has come and the descriptor is not ready.
    package func wait(
        for readiness: Readiness,
        of descriptor: CInt,
        until deadline: ContinuousClock.Instant
    ) async throws -> Bool {
        do {
            try await wait { token, continuation in arm(token, descriptor, continuation, readiness, until: deadline) }
            return true
        } catch is TimeIsOver {
            return false
        }
    }

    /// Returns when the time has come, to the millisecond.
    ///
    /// - Throws: `CancellationError`.
    func sleep(until deadline: ContinuousClock.Instant) async throws {
        try await wait { token, continuation in
            let isFirst = waits.withLock { waits -> Bool? in
                waits.isStarting(token) ? waits.putToSleep(token, until: deadline, continuation) : nil
            }
            guard let isFirst else { return continuation.resume(throwing: CancellationError()) }
            if isFirst, !isOurThread { wakeUp() }
        }
    }

    /// Entries among the sleepers, woken ones that have not been cleared away included.
    var sleeperCount: Int { waits.withLock { $0.sleeperCount } }

    var isOurThread: Bool {
        thread.withLock { $0.map { pthread_equal($0, pthread_self()) != 0 } ?? false }
    }

    /// Makes the thread look around.
    func wakeUp() { eventfd_write(wake, 1) }

    private func wait(_ begin: (UInt64, PollerWaiters.Continuation) -> Void) async throws {
        let token = waits.withLock { $0.begin() }
        // A wait that never came to be armed, or was cancelled after its end, leaves nothing behind.
        defer { waits.withLock { $0.forget(token) } }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { begin(token, $0) }
        } onCancel: {
            waits.withLock { disarm($0.cancel(token)) }?.resume(throwing: CancellationError())
        }
    }

    private func arm(
        _ token: UInt64,
        _ descriptor: CInt,
        _ continuation: PollerWaiters.Continuation,
        _ readiness: Readiness,
        until deadline: ContinuousClock.Instant?
    ) {
        var isFirst = false
        let refusal = waits.withLock { waits -> (any Error)? in
            guard waits.isStarting(token) else { return CancellationError() }
            var event = epoll_event()
            event.events = EPOLLONESHOT.rawValue
            switch readiness {
            case .readable: event.events |= EPOLLIN.rawValue
            case .writable: event.events |= EPOLLOUT.rawValue
            case .hungUp: break  // EPOLLHUP and EPOLLERR are always reported (epoll_ctl(2)).
            }
            event.data.u64 = token
            // Armed under the lock, so that a cancellation cannot come between the two and leave the kernel's entry behind.
            guard epoll_ctl(epoll, EPOLL_CTL_ADD, descriptor, &event) == 0 else {
                return SocketError.failed(call: "epoll_ctl", on: "descriptor \(descriptor)", code: errno)
            }
            waits.arm(token, on: descriptor, continuation)
            if let deadline { isFirst = waits.end(token, at: deadline) }
            return nil
        }
        if isFirst, !isOurThread { wakeUp() }
        if let refusal { continuation.resume(throwing: refusal) }
    }

    /// Takes the kernel's entry of a wait away that ends. Under the lock, while the wait's owner still waits: the
    /// descriptor's number cannot have become another one's.
    private func disarm(
        _ ended: (descriptor: CInt?, continuation: PollerWaiters.Continuation)?
    ) -> PollerWaiters.Continuation? {
        if let descriptor = ended?.descriptor { epoll_ctl(epoll, EPOLL_CTL_DEL, descriptor, nil) }
        return ended?.continuation
    }

    private func run() -> Never {
        thread.withLock { $0 = pthread_self() }
        var events = [epoll_event](repeating: epoll_event(), count: 64)
        while true {
            let count = epoll_wait(epoll, &events, CInt(events.count), timeLeft)
            for event in events.prefix(Int(max(count, 0))) {
                if event.data.u64 == Self.wakeToken {
                    var count: eventfd_t = 0
                    eventfd_read(wake, &count)
                } else {
                    // An event of a wait that was cancelled meanwhile finds no entry.
                    waits.withLock { disarm($0.end(event.data.u64)) }?.resume()
                }
            }
            wakeSleepers()
            for _ in 0..<Self.patience where !runJobs() { break }
        }
    }

    /// What epoll_wait(2) may wait, in milliseconds.
    private var timeLeft: CInt {
        guard jobs.isEmpty else { return 0 }
        guard let deadline = waits.withLock({ $0.earliest }) else { return -1 }
        let (seconds, attoseconds) = (deadline - .now).components
        // Rounded up: woken too early, it would only look again.
        return CInt(clamping: max(0, seconds * 1_000 + attoseconds / 1_000_000_000_000_000 + 1))
    }

    private func wakeSleepers() {
        while true {
            typealias Ended = (isOver: Bool, isAsleep: Bool, continuation: PollerWaiters.Continuation?)
            let (isOver, isAsleep, continuation) = waits.withLock { waits -> Ended in
                guard waits.earliest != nil, let token = waits.nextSleeper(at: .now) else { return (true, false, nil) }
                let ended = waits.end(token)
                return (false, ended?.descriptor == nil, disarm(ended))
            }
            if isOver { return }
            if isAsleep { continuation?.resume() } else { continuation?.resume(throwing: TimeIsOver()) }
        }
    }
}

extension Poller {
    /// Returns when the descriptor is ready or so much time has passed by a clock.
    ///
    /// - Returns: False when the time was over first.
    /// - Throws: As `wait(for:of:)`.
    package func wait(
        for readiness: Readiness,
        of descriptor: CInt,
        atMost limit: Duration,
        by clock: any Clock<Duration>
    ) async throws -> Bool {
        if clock is PollerClock { return try await wait(for: readiness, of: descriptor, until: .now + limit) }
        // Another clock's time has to be waited for beside.
        return try await withDeadline(limit, clock: clock) { [self] in
            try await wait(for: readiness, of: descriptor)
            return true
        } ?? false
    }
}

/// The poller's thread as a place where tasks run.
extension Poller: TaskExecutor {
    package func enqueue(_ job: consuming ExecutorJob) {
        // Its own thread looks at the jobs before it waits again.
        if jobs.add(job), !isOurThread { wakeUp() }
    }

    /// Runs the jobs that wait; not those that they bring about.
    ///
    /// - Returns: False when there were none.
    func runJobs() -> Bool {
        let batch = jobs.takeAll()
        for job in batch { job.runSynchronously(on: asUnownedTaskExecutor()) }
        return !batch.isEmpty
    }
}
