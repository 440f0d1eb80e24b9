import CLinux
import CUsbmuxd
import Glibc
import Sockets
import Synchronization

/// A thread for the calls of a library that cannot be trusted with descriptors, one at a time, in order.
///
/// The thread has a table of descriptors of its own (unshare(2), CLONE_FILES). libusbmuxd 2.0 closes a socket twice when
/// usbmuxd ends while it sends, and the second close would hit whatever another thread has opened meanwhile: a phone's
/// stream, a file. It also uses select(2), which aborts the process at descriptor 1024. In a table that holds nothing else,
/// both are harmless. A descriptor goes in or out by SCM_RIGHTS (unix(7)).
///
/// It lives as long as the process; make one as a `static let`.
final class LibraryThread: Sendable {
    private typealias Call = @Sendable (_ lent: CInt, _ refusal: UsbmuxError?) -> Void

    private let calls = Mutex<[Call]>([])
    /// One packet for each call; the other end is the one descriptor that the thread keeps.
    private let channel: SocketPair

    init(named name: String) {
        guard let channel = SocketPair() else { preconditionFailure("socketpair failed: errno \(errno)") }
        CLinux_set_nonblocking(channel.near.number)
        self.channel = channel
        startThread(named: name) { [self] in run() }
    }

    /// Runs a call there, with a copy of the descriptor lent, which is closed after it.
    ///
    /// Cancelled before its turn it is never made; cancelled during it, its value is dropped.
    func call<Value: Sendable>(
        lending descriptor: CInt = -1,
        _ body: @escaping @Sendable (CInt) throws -> Value
    ) async throws -> Value {
        let promise = Promise<Value>()
        let failure = calls.withLock { calls -> CInt in
            guard CUsbmuxd_pass(channel.near.number, descriptor) > 0 else { return errno }
            calls.append { lent, refusal in
                if let refusal {
                    promise.settle(.failure(refusal))
                } else if !promise.isSettled {
                    promise.settle(Result { try body(lent) })
                }
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
            let call = calls.withLock { $0.removeFirst() }
            call(lent, refusal)
            // Not apart, the number is the process's own, but the descriptor is this thread's all the same.
            if lent >= 0 { close(lent) }
        }
    }
}
