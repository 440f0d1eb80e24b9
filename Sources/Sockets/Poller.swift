import CLinux
import Glibc
import Synchronization

/// Waits for descriptors on one thread, so that any number of tasks can await readiness.
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
        /// Cancelled before it was armed.
        case cancelled
    }

    private struct State {
        var nextToken: UInt64 = 1
        var waits: [UInt64: Wait] = [:]
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
    /// One task at a time may wait for one descriptor, and its owner must outlive the wait. The kernel has forgotten the
    /// descriptor when this returns or throws, so that its number may be closed and used again at once.
    /// - Throws: `CancellationError`; `SocketError` when the kernel watches no more descriptors (ENOSPC, ENOMEM).
    package func wait(for readiness: Readiness, of descriptor: CInt) async throws {
        let token = state.withLock { state in
            defer { state.nextToken += 1 }
            state.waits[state.nextToken] = .starting
            return state.nextToken
        }
        // A wait that never came to be armed, or was cancelled after its end, leaves nothing behind.
        defer { state.withLock { $0.waits[token] = nil } }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                arm(token, descriptor, continuation, readiness)
            }
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
        guard case .armed(let descriptor, let continuation) = state.waits[token] else { return nil }
        state.waits[token] = nil
        epoll_ctl(epoll, EPOLL_CTL_DEL, descriptor, nil)
        return continuation
    }

    private func run() -> Never {
        var events = [epoll_event](repeating: epoll_event(), count: 64)
        while true {
            let count = epoll_wait(epoll, &events, CInt(events.count), -1)
            for event in events.prefix(Int(max(count, 0))) {
                // An event of a wait that was cancelled meanwhile finds no entry: tokens are never used twice.
                state.withLock { disarm(event.data.u64, &$0) }?.resume()
            }
        }
    }
}
