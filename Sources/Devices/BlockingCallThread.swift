import CLinux
import Glibc
import SystemIO
import Synchronization

/// A thread of its own for calls that block, one at a time, in order.
///
/// Unlike an actor on a `ThreadExecutor`, a call can be given up: its caller goes on at once, whatever the call does. It
/// lives as long as the process; make one as a `static let`.
final class BlockingCallThread: Sendable {
    private let queue = Mutex<[@Sendable () -> Void]>([])
    private let bell: CInt

    init(named name: String) {
        bell = eventfd(0, CInt(EFD_CLOEXEC))
        precondition(bell >= 0, "eventfd failed: errno \(errno)")
        startThread(named: name) { [self] in run() }
    }

    /// Runs a call there. Cancelled before its turn it is never made; cancelled during it, its value is dropped.
    func call<Value: Sendable>(_ body: @escaping @Sendable () throws -> Value) async throws -> Value {
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
