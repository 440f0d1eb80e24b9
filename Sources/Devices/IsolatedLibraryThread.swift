import CLinux
import CUsbmuxd
import Glibc
import SystemIO
import Synchronization

/// A thread for the calls of a library that cannot be trusted with descriptors, one at a time, in order.
///
/// The thread has a table of descriptors of its own (unshare(2), CLONE_FILES). libusbmuxd 2.0 closes a socket twice when
/// usbmuxd ends while it sends, and the second close would hit whatever another thread has opened meanwhile: a phone's
/// stream, a file. It also uses select(2), which aborts the process at descriptor 1024. In a table that holds nothing else,
/// both are harmless. A descriptor goes in or out by SCM_RIGHTS (unix(7)).
///
/// The thread wakes no task. Waking one writes to an eventfd of the process, or starts a thread; in this table that number
/// is not open or is another file, and a thread that is started here has this table. A second thread, which has the
/// process's table, settles the promises. The two threads talk over one channel.
///
/// Both threads live as long as the process; make one as a `static let`.
final class IsolatedLibraryThread: Sendable {
    /// Settles the promise of a call that was made.
    private typealias Outcome = @Sendable () -> Void
    private typealias Call = @Sendable (_ lent: CInt, _ refusal: UsbmuxError?) -> Outcome

    private struct Queues {
        var calls: [Call] = []
        var outcomes: [Outcome] = []
    }

    private let queues = Mutex(Queues())
    /// One packet for each call, and one back for each outcome; the far end is the one descriptor that the thread keeps.
    private let channel: SocketPair

    init(named name: String) {
        guard let channel = SocketPair() else { preconditionFailure("socketpair failed: errno \(errno)") }
        CLinux_set_nonblocking(channel.near.number)
        self.channel = channel
        startThread(named: name) { [self] in run() }
        startThread(named: name + "-r") { [self] in settle() }
    }

    /// Runs a call there, with a copy of the descriptor lent, which is closed after it.
    ///
    /// Cancelled before its turn it is never made; cancelled during it, its value is dropped. What the body captures must
    /// own no descriptor, because the thread may be the last to hold it.
    func call<Value: Sendable>(
        lending descriptor: CInt = -1,
        _ body: @escaping @Sendable (CInt) throws -> Value
    ) async throws -> Value {
        let promise = Promise<Value>()
        let failure = queues.withLock { queues -> CInt in
            guard CUsbmuxd_pass(channel.near.number, descriptor) > 0 else { return errno }
            queues.calls.append { lent, refusal in
                if let refusal { return { promise.settle(.failure(refusal)) } }
                if promise.isSettled { return {} }
                let result = Result { try body(lent) }
                return { promise.settle(result) }
            }
            return 0
        }
        guard failure == 0 else {
            throw UsbmuxError.failed(call: "handing work to libusbmuxd", words: SocketError.words(for: failure))
        }
        return try await promise.value()
    }

    private func run() -> Never {
        let far = channel.far.number
        let isApart = CUsbmuxd_keep_only(far) == 0
        let refusal =
            isApart ? nil : UsbmuxError.failed(call: "unshare", words: SocketError.words(for: errno))
        while true {
            var lent: CInt = -1
            guard CUsbmuxd_take(far, &lent) > 0 else { continue }
            let call = queues.withLock { $0.calls.removeFirst() }
            let outcome = call(lent, refusal)
            // Not apart, the number is the process's own, but the descriptor is this thread's all the same.
            if lent >= 0 { close(lent) }
            queues.withLock { $0.outcomes.append(outcome) }
            // The far end blocks: no packet is lost while the other thread has its hands full.
            _ = CUsbmuxd_pass(far, -1)
        }
    }

    /// Settles what the other thread has finished, in the process's own table.
    private func settle() -> Never {
        let near = channel.near.number
        while true {
            var state = pollfd(fd: near, events: Int16(POLLIN), revents: 0)
            var nothing: CInt = -1
            guard poll(&state, 1, -1) > 0, CUsbmuxd_take(near, &nothing) > 0 else { continue }
            let outcomes = queues.withLock { queues in
                defer { queues.outcomes = [] }
                return queues.outcomes
            }
            for outcome in outcomes { outcome() }
        }
    }
}
