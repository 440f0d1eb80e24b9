import CLinux
import Glibc
import Synchronization

/// Waits for descriptors on one epoll thread, so that any number of tasks can await readiness.
///
/// SwiftNIO is not used here because a device stream changes owners. The stream begins as a usbmuxd request and continues
/// as the app's bytes. NIO does not return descriptors (2.101 has only `takingOwnershipOfDescriptor`).
///
/// Thread safety: the epoll descriptor may be used from any thread (epoll(7)); a mutex protects the table of waits.
package final class Poller: Sendable {
    /// The condition that a task waits for. The raw value is its event of epoll.
    package enum Readiness: UInt32, Sendable {
        case readable = 0x1  // EPOLLIN
        case writable = 0x4  // EPOLLOUT
        /// The peer has closed both directions or reset the connection. A half-close does not count.
        case hungUp = 0  // EPOLLHUP and EPOLLERR are always reported (epoll_ctl(2)).
    }

    /// The shared instance. Waiting uses no CPU, so one instance is enough.
    package static let shared = Poller()

    /// The epoll token of `wake`; no wait has this token.
    private static let wakeToken: UInt64 = 0

    private let epoll: CInt
    private let wake: CInt
    let waiters = Mutex(PollerWaiters())

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

    /// Returns when the descriptor is ready or has an error, which the next read or write reports.
    ///
    /// Only one task at a time may wait for a descriptor, and its owner must outlive the wait. After the call the
    /// descriptor is no longer registered, so its number may be closed and reused.
    /// - Throws: `CancellationError`; `SocketError`: ENOSPC or ENOMEM if the kernel watches no more descriptors, EEXIST
    ///   if another task waits for this one, EBADF if the descriptor is closed.
    package func wait(for readiness: Readiness, of descriptor: CInt) async throws {
        _ = try await wait(until: nil, for: readiness, of: descriptor)
    }

    /// Waits until a deadline, with millisecond resolution. Unlike `withTimeout`, this needs one wait and no child
    /// tasks.
    ///
    /// - Returns: False if the deadline passed before the descriptor was ready.
    package func wait(
        for readiness: Readiness,
        of descriptor: CInt,
        until deadline: MonotonicInstant
    ) async throws -> Bool {
        try await wait(until: deadline, for: readiness, of: descriptor)
    }

    /// Returns at the deadline, with millisecond resolution.
    ///
    /// - Throws: `CancellationError`.
    func sleep(until deadline: MonotonicInstant) async throws {
        _ = try await wait(until: deadline, for: .hungUp, of: nil)
    }

    /// Wakes the poller thread.
    private func wakeUp() { eventfd_write(wake, 1) }

    private func wait(
        until deadline: MonotonicInstant?,
        for readiness: Readiness,
        of descriptor: CInt?
    ) async throws -> Bool {
        let token = waiters.withLock { $0.begin() }
        // Removes a wait that could not be armed. Every other one has ended.
        defer { waiters.withLock { _ = $0.end(token) } }
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                arm(token, (descriptor, continuation), for: readiness, until: deadline)
            }
        } onCancel: {
            waiters.withLock { disarm($0.end(token)) }?.resume(throwing: CancellationError())
        }
    }

    /// Registers the descriptor with epoll and starts the timer.
    private func arm(
        _ token: UInt64,
        _ wait: PollerWaiters.Wait,
        for readiness: Readiness,
        until deadline: MonotonicInstant?
    ) {
        var isFirst = false
        let error = waiters.withLock { waiters -> (any Error)? in
            guard waiters.isStarting(token) else { return CancellationError() }
            if let descriptor = wait.descriptor {
                var event = epoll_event()
                event.events = EPOLLONESHOT.rawValue | readiness.rawValue
                event.data.u64 = token
                // The lock is held, so that a cancellation cannot run in between and leave the kernel's registration
                // behind.
                guard epoll_ctl(epoll, EPOLL_CTL_ADD, descriptor, &event) == 0 else {
                    return SocketError.failed(call: "epoll_ctl", on: "descriptor \(descriptor)", code: errno)
                }
            }
            isFirst = waiters.arm(token, wait, until: deadline)
            return nil
        }
        if isFirst { wakeUp() }
        if let error { wait.continuation.resume(throwing: error) }
    }

    /// Unregisters the descriptor of an ended wait. Called under the lock while the owner still waits, so the number
    /// cannot have been reused.
    private func disarm(_ ended: PollerWaiters.Wait?) -> CheckedContinuation<Bool, any Error>? {
        if let descriptor = ended?.descriptor { epoll_ctl(epoll, EPOLL_CTL_DEL, descriptor, nil) }
        return ended?.continuation
    }

    private func run() -> Never {
        var events = [epoll_event](repeating: epoll_event(), count: 64)
        while true {
            let count = epoll_wait(epoll, &events, CInt(events.count), waiters.withLock { $0.nextTimeout() })
            for event in events.prefix(Int(max(count, 0))) {
                if event.data.u64 == Self.wakeToken {
                    var count: eventfd_t = 0
                    eventfd_read(wake, &count)
                } else {
                    // An event of a cancelled wait finds no entry.
                    waiters.withLock { disarm($0.end(event.data.u64)) }?.resume(returning: true)
                }
            }
            fireTimers()
        }
    }

    /// Resumes every wait with a due timer.
    private func fireTimers() {
        while let token = waiters.withLock({ $0.timers.earliest == nil ? nil : $0.timers.popDue(at: .now) }) {
            waiters.withLock { disarm($0.end(token)) }?.resume(returning: false)
        }
    }
}

extension Poller {
    /// Returns when the descriptor is ready or the time limit has passed.
    ///
    /// - Returns: False if the time limit passed first.
    /// - Throws: The errors of `wait(for:of:)`.
    package func wait(
        for readiness: Readiness,
        of descriptor: CInt,
        atMost limit: Duration,
        by clock: any Clock<Duration>
    ) async throws -> Bool {
        if clock is PollerClock {
            return try await wait(for: readiness, of: descriptor, until: MonotonicInstant.now + limit)
        }
        // The time of another clock needs a separate wait.
        return try await withTimeout(limit, clock: clock) { [self] in
            try await wait(for: readiness, of: descriptor)
            return true
        } ?? false
    }
}
