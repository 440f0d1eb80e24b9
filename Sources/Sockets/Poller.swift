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

    /// A wait from its first moment to its last; the kernel has an entry for it exactly while it is `armed`.
    private enum Wait {
        case starting
        case armed(descriptor: CInt, CheckedContinuation<Void, any Error>)
        /// Until a time, without an entry of the kernel's.
        case asleep(CheckedContinuation<Void, any Error>)
        /// Cancelled before it was armed.
        case cancelled
    }

    private struct State {
        var nextToken: UInt64 = 1
        var waits: [UInt64: Wait] = [:]
        var sleepers = Sleepers()
    }

    /// How many times the jobs that jobs bring about have their turn before the descriptors are looked at again.
    private static let patience = 32
    /// The place of `wake` in epoll; waits begin at 1.
    private static let wakeToken: UInt64 = 0

    private let epoll: CInt
    private let wake: CInt
    private let state = Mutex(State())
    private let jobs = Mutex<[UnownedJob]>([])
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
    /// - Throws: `CancellationError`; `SocketError` when the kernel watches no more descriptors (ENOSPC, ENOMEM).
    package func wait(for readiness: Readiness, of descriptor: CInt) async throws {
        try await wait { token, continuation in arm(token, descriptor, continuation, readiness) }
    }

    /// Entries among the sleepers, woken ones that have not been cleared away included.
    var sleeperCount: Int { state.withLock { $0.sleepers.count } }

    /// Returns when the time has come, to the millisecond.
    ///
    /// - Throws: `CancellationError`.
    func sleep(until deadline: ContinuousClock.Instant) async throws {
        try await wait { token, continuation in
            let (isAsleep, isFirst) = state.withLock { state in
                guard case .starting = state.waits[token] else { return (false, false) }
                state.waits[token] = .asleep(continuation)
                let isFirst = state.sleepers.earliest.map { deadline < $0 } ?? true
                state.sleepers.add(token, until: deadline)
                if state.sleepers.count > 2 * state.waits.count + 64 {
                    state.sleepers.prune { [waits = state.waits] in waits[$0] != nil }
                }
                return (true, isFirst)
            }
            if !isAsleep { continuation.resume(throwing: CancellationError()) }
            if isFirst, !isOurThread { eventfd_write(wake, 1) }
        }
    }

    private func wait(_ begin: (UInt64, CheckedContinuation<Void, any Error>) -> Void) async throws {
        let token = state.withLock { state in
            defer { state.nextToken += 1 }
            state.waits[state.nextToken] = .starting
            return state.nextToken
        }
        // A wait that never came to be armed, or was cancelled after its end, leaves nothing behind.
        defer { state.withLock { $0.waits[token] = nil } }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { begin(token, $0) }
        } onCancel: {
            cancel(token)
        }
    }

    private func arm(
        _ token: UInt64,
        _ descriptor: CInt,
        _ continuation: CheckedContinuation<Void, any Error>,
        _ readiness: Readiness
    ) {
        let refusal = state.withLock { state -> (any Error)? in
            guard case .starting = state.waits[token] else { return CancellationError() }
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
                let code = errno
                // Two waits for one descriptor, or a number that is not open: a fault of the caller that would hang it.
                precondition(code != EEXIST && code != EBADF, "epoll_ctl failed: errno \(code)")
                return SocketError.failed(call: "epoll_ctl", on: "descriptor \(descriptor)", code: code)
            }
            state.waits[token] = .armed(descriptor: descriptor, continuation)
            return nil
        }
        if let refusal { continuation.resume(throwing: refusal) }
    }

    private func cancel(_ token: UInt64) {
        let continuation = state.withLock { state -> CheckedContinuation<Void, any Error>? in
            if case .starting = state.waits[token] { state.waits[token] = .cancelled }
            return disarm(token, &state)
        }
        continuation?.resume(throwing: CancellationError())
    }

    /// Takes an armed wait out of the table and out of the kernel. Under the lock, while the wait's owner still waits: the
    /// descriptor's number cannot have become another one's.
    private func disarm(_ token: UInt64, _ state: inout State) -> CheckedContinuation<Void, any Error>? {
        switch state.waits[token] {
        case .armed(let descriptor, let continuation):
            state.waits[token] = nil
            epoll_ctl(epoll, EPOLL_CTL_DEL, descriptor, nil)
            return continuation
        case .asleep(let continuation):
            state.waits[token] = nil
            return continuation
        case .starting, .cancelled, nil:
            return nil
        }
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
                    // An event of a wait that was cancelled meanwhile finds no entry: tokens are never used twice.
                    state.withLock { disarm(event.data.u64, &$0) }?.resume()
                }
            }
            wakeSleepers()
            for _ in 0..<Self.patience where !runJobs() { break }
        }
    }

    /// What epoll_wait(2) may wait, in milliseconds.
    private var timeLeft: CInt {
        guard jobs.withLock({ $0.isEmpty }) else { return 0 }
        guard let deadline = state.withLock({ $0.sleepers.earliest }) else { return -1 }
        let (seconds, attoseconds) = (deadline - .now).components
        // Rounded up: woken too early, it would only look again.
        return CInt(clamping: max(0, seconds * 1_000 + attoseconds / 1_000_000_000_000_000 + 1))
    }

    private func wakeSleepers() {
        while true {
            let (isOver, continuation) = state.withLock { state in
                guard state.sleepers.count > 0, let token = state.sleepers.next(at: .now) else {
                    return (true, CheckedContinuation<Void, any Error>?.none)
                }
                return (false, disarm(token, &state))
            }
            if isOver { return }
            continuation?.resume()
        }
    }

    private var isOurThread: Bool {
        thread.withLock { $0.map { pthread_equal($0, pthread_self()) != 0 } ?? false }
    }

    /// - Returns: False when there were none.
    private func runJobs() -> Bool {
        let batch = jobs.withLock { jobs in
            defer { jobs = [] }
            return jobs
        }
        for job in batch { job.runSynchronously(on: asUnownedTaskExecutor()) }
        return !batch.isEmpty
    }
}

extension Poller: TaskExecutor {
    package func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        let isFirst = jobs.withLock { jobs in
            jobs.append(job)
            return jobs.count == 1
        }
        // Its own thread looks at the jobs before it waits again.
        if isFirst, !isOurThread { eventfd_write(wake, 1) }
    }
}
