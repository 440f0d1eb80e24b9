import CLinux
import Glibc
import Synchronization

/// Waits for descriptors on one thread, so that any number of tasks can await readiness.
///
/// Why not SwiftNIO: a stream to a phone begins as a request to usbmuxd and goes on as the app's own bytes, in another
/// owner's hands, and NIO gives no descriptor back (2.101 has only `takingOwnershipOfDescriptor`).
///
/// Thread safety: the epoll descriptor may be used from any thread (epoll(7)); the table of waiters is behind a mutex.
package final class Poller: Sendable {
    package enum Readiness: Sendable {
        case readable
        case writable
    }

    /// The one for the whole process: waiting costs no CPU, so there is no reason for two.
    package static let shared = Poller()

    private struct Waiter {
        let descriptor: CInt
        let continuation: CheckedContinuation<Void, any Error>
    }

    private struct State {
        var nextToken: UInt64 = 1
        var waiters: [UInt64: Waiter] = [:]
        /// Cancelled before their continuation was stored.
        var cancelled: Set<UInt64> = []
    }

    private let epoll: CInt
    private let state = Mutex(State())

    private init() {
        epoll = epoll_create1(CInt(EPOLL_CLOEXEC))
        precondition(epoll >= 0, "epoll_create1 failed: errno \(errno)")
        startThread(named: "patchbay-poll") { [self] in run() }
    }

    /// Returns when the descriptor is ready, or at once in error states, which the next read or write reports.
    ///
    /// One task at a time may wait for one descriptor, and its owner must outlive the wait.
    /// - Throws: `CancellationError`.
    package func wait(for readiness: Readiness, of descriptor: CInt) async throws {
        let token = state.withLock { state in
            defer { state.nextToken += 1 }
            return state.nextToken
        }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                arm(token, Waiter(descriptor: descriptor, continuation: continuation), readiness)
            }
        } onCancel: {
            cancel(token)
        }
    }

    private func arm(_ token: UInt64, _ waiter: Waiter, _ readiness: Readiness) {
        let isCancelled = state.withLock { state in
            if state.cancelled.remove(token) != nil { return true }
            state.waiters[token] = waiter
            // Armed under the lock, so that a cancellation cannot come between the two and leave the kernel's entry behind.
            var event = epoll_event()
            event.events = (readiness == .readable ? EPOLLIN : EPOLLOUT).rawValue | EPOLLONESHOT.rawValue
            event.data.u64 = token
            let added = epoll_ctl(epoll, EPOLL_CTL_ADD, waiter.descriptor, &event)
            // A regular file is always ready (EPERM); anything else here is a bug of ours.
            precondition(added == 0, "epoll_ctl failed: errno \(errno)")
            return false
        }
        if isCancelled { waiter.continuation.resume(throwing: CancellationError()) }
    }

    private func cancel(_ token: UInt64) {
        let waiter = state.withLock { state -> Waiter? in
            guard let waiter = state.waiters.removeValue(forKey: token) else {
                // Either it has just been resumed (then the entry is removed when its task returns) or it is not armed yet.
                if token < state.nextToken { state.cancelled.insert(token) }
                return nil
            }
            epoll_ctl(epoll, EPOLL_CTL_DEL, waiter.descriptor, nil)
            return waiter
        }
        waiter?.continuation.resume(throwing: CancellationError())
    }

    private func run() -> Never {
        var events = [epoll_event](repeating: epoll_event(), count: 64)
        while true {
            let count = epoll_wait(epoll, &events, CInt(events.count), -1)
            for event in events.prefix(Int(max(count, 0))) {
                let waiter = state.withLock { state -> Waiter? in
                    guard let waiter = state.waiters.removeValue(forKey: event.data.u64) else { return nil }
                    epoll_ctl(epoll, EPOLL_CTL_DEL, waiter.descriptor, nil)
                    return waiter
                }
                waiter?.continuation.resume()
            }
        }
    }
}
