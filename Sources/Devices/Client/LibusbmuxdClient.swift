import CLinux
import CUsbmuxd
import Glibc
package import Model
import Synchronization
package import SystemIO

/// A client of usbmuxd built on libusbmuxd 2.0.2, for users who prefer the library that other tools use.
///
/// Uses only the library's Connect, and not its events. `usbmuxd_events_subscribe` leaks a descriptor at each reconnect,
/// spins when usbmuxd hangs up, and misses a restart if the address has the form `UNIX:`.
///
/// The library's calls block, share unprotected globals and close descriptors of others. All of them therefore run one
/// after another on one `IsolatedLibraryThread`. A device that does not answer Connect delays the other calls by the
/// library's timeout of 5 s.
///
/// Thread safety: the library reads the address from an environment variable. The client sets the variable on that
/// thread before a call, and only if it differs.
package final class LibusbmuxdClient: UsbmuxClient {
    private static let thread = IsolatedLibraryThread(named: "patchbay-libmux")
    private static let queueFull = SocketError.message(for: EAGAIN)

    package let connectionLimit: FairLimiter<UDID>
    package let connectTimeout = Duration.seconds(10)
    private let address: ServerAddress

    /// `connectionLimit` is shared by all clients of the same usbmuxd.
    package init(
        address: ServerAddress,
        connectionLimit: FairLimiter<UDID> = FairLimiter(limit: NativeUsbmuxClient.streamLimit)
    ) {
        self.address = address
        self.connectionLimit = connectionLimit
    }

    package func method(for route: USBRoute, to handle: DeviceMonitor.Handle) -> ConnectPlan.Method {
        .task {
            do {
                let connection = try await self.connect(deviceID: handle.deviceID, port: route.port)
                guard handle.session.owns(connection: connection.descriptor.number) else {
                    throw ConnectPlan.AttemptFailure.closed
                }
                return connection
            } catch let error as UsbmuxError {
                throw error.connectFailure ?? DialError(.failed, "phone \(route.udid) cannot be reached: \(error)")
            }
        }
    }

    /// Opens a stream. Retries while usbmuxd's accept queue is full, because the library does not.
    ///
    /// - Throws: `UsbmuxError`; `CancellationError`.
    func connect(deviceID: UInt32, port: UInt16) async throws -> Connection {
        guard let reply = SocketPair() else {
            throw UsbmuxError.failed(call: "socketpair", message: SocketError.message(for: errno))
        }
        let far = reply.far.number
        try await withTimeout(connectTimeout, request: "Connect") { [address] () async throws -> Void in
            var backoff = Backoff.queueFull
            while true {
                do {
                    return try await Self.thread.call(lending: far) { lent in
                        Self.setAddress(address)
                        let start = ContinuousClock.now
                        let number = usbmuxd_connect(deviceID, port)
                        guard number >= 0 else { throw Self.error(number, after: ContinuousClock.now - start) }
                        defer { close(number) }
                        CLinux_set_nonblocking(number)
                        // If the caller has timed out, nothing reads the descriptor; it is closed with the channel.
                        guard CUsbmuxd_send_descriptor(lent, number) > 0 else {
                            throw UsbmuxError.closed(request: "Connect")
                        }
                    }
                } catch UsbmuxError.failed(_, Self.queueFull) {
                    try await backoff.wait(clock: PollerClock())
                }
            }
        }
        guard let descriptor = reply.receive() else { throw UsbmuxError.closed(request: "Connect") }
        return Connection(descriptor: descriptor, halfClose: .destroys)
    }

    private static func setAddress(_ address: ServerAddress) {
        libusbmuxd_set_use_inotify(0)
        let text = address.libusbmuxdForm
        if let now = getenv(ServerAddress.usbmuxdVariable), String(cString: now) == text { return }
        setenv(ServerAddress.usbmuxdVariable, text, 1)
    }

    /// Converts a negative status of `usbmuxd_connect` to an error.
    private static func error(_ status: CInt, after duration: Duration) -> UsbmuxError {
        switch -status {
        case ECONNREFUSED: .result(.refused, request: "Connect")
        case ENODEV: .result(.badDevice, request: "Connect")
        // The library returns EBADF at once for a result that it does not know, such as netmuxd's 1 for every failed
        // Connect. It returns the same after 5 s without a response.
        case EBADF where duration < .seconds(4): .result(.badCommand, request: "Connect")
        case EBADF, ETIMEDOUT: .timedOut(request: "Connect", limit: .seconds(5))
        case EAGAIN: .failed(call: "usbmuxd_connect", message: queueFull)
        default: .failed(call: "usbmuxd_connect", message: SocketError.message(for: -status))
        }
    }
}

extension UsbmuxError {
    /// Nil if the error is final and names its reason.
    fileprivate var connectFailure: (any Error)? {
        switch self {
        case .result(let result, _): ConnectPlan.AttemptFailure.rejected(code: result.code)
        case .timedOut: ConnectPlan.AttemptFailure.timedOut
        case .closed: ConnectPlan.AttemptFailure.closed
        default: nil
        }
    }
}

/// Runs the calls of a library that misuses descriptors, one at a time and in order, on a thread of its own.
///
/// The thread has its own descriptor table (unshare(2), CLONE_FILES). libusbmuxd 2.0 closes a socket twice when usbmuxd
/// ends during a send. The second close would hit any descriptor opened by another thread in between. The library also
/// calls select(2), which aborts the process at descriptor 1024. Both are harmless in a table with no other
/// descriptors. Descriptors are passed with SCM_RIGHTS (unix(7)).
///
/// The thread must not resume a Swift task. A resume writes to an eventfd of the process or starts a thread. In this
/// table that number is closed or belongs to another file, and a new thread would inherit the table. A second thread
/// with the process's table completes the promises instead. The two threads communicate over one channel.
///
/// Both threads live as long as the process, so create instances only as a `static let`.
final class IsolatedLibraryThread: Sendable {
    /// Completes the promise of a call that has run.
    private typealias Completion = @Sendable () -> Void
    private typealias Call = @Sendable (_ lent: CInt, _ failure: UsbmuxError?) -> Completion

    private struct Queues {
        var calls: [Call] = []
        var completions: [Completion] = []
    }

    private let queues = Mutex(Queues())
    /// Carries one packet per call and one back per result. The far end is the only descriptor that the thread keeps.
    private let channel: SocketPair

    init(named name: String) {
        guard let channel = SocketPair() else { preconditionFailure("socketpair failed: errno \(errno)") }
        CLinux_set_nonblocking(channel.near.number)
        self.channel = channel
        startThread(named: name) { [self] in run() }
        startThread(named: name + "-r") { [self] in completeCalls() }
    }

    /// Runs a call on the thread. The body gets a copy of `descriptor`, which is closed afterwards.
    ///
    /// A call cancelled before it starts is not made. If the task is cancelled during the call, the result is
    /// discarded. The values captured by the body must not own a descriptor, because the thread may release them last.
    func call<Value: Sendable>(
        lending descriptor: CInt = -1,
        _ body: @escaping @Sendable (CInt) throws -> Value
    ) async throws -> Value {
        let promise = Promise<Value>()
        let failure = queues.withLock { queues -> CInt in
            guard CUsbmuxd_send_descriptor(channel.near.number, descriptor) > 0 else { return errno }
            queues.calls.append { lent, failure in
                if let failure { return { promise.complete(.failure(failure)) } }
                if promise.isCompleted { return {} }
                let result = Result { try body(lent) }
                return { promise.complete(result) }
            }
            return 0
        }
        guard failure == 0 else {
            throw UsbmuxError.failed(call: "handing work to libusbmuxd", message: SocketError.message(for: failure))
        }
        return try await promise.value()
    }

    private func run() -> Never {
        let far = channel.far.number
        let isIsolated = CUsbmuxd_isolate_descriptors(far) == 0
        let failure =
            isIsolated ? nil : UsbmuxError.failed(call: "unshare", message: SocketError.message(for: errno))
        while true {
            var lent: CInt = -1
            guard CUsbmuxd_receive_descriptor(far, &lent) > 0 else { continue }
            let call = queues.withLock { $0.calls.removeFirst() }
            let completion = call(lent, failure)
            // Even if unshare failed and the table is the process's own, this thread owns the received descriptor.
            if lent >= 0 { close(lent) }
            queues.withLock { $0.completions.append(completion) }
            // The far end blocks, so no packet is lost while the other thread is busy.
            _ = CUsbmuxd_send_descriptor(far, -1)
        }
    }

    /// Completes the promises of finished calls, in the process's own descriptor table.
    private func completeCalls() -> Never {
        let near = channel.near.number
        while true {
            var state = pollfd(fd: near, events: Int16(POLLIN), revents: 0)
            var nothing: CInt = -1
            guard poll(&state, 1, -1) > 0, CUsbmuxd_receive_descriptor(near, &nothing) > 0 else { continue }
            let completions = queues.withLock { queues in
                defer { queues.completions = [] }
                return queues.completions
            }
            for completion in completions { completion() }
        }
    }
}

/// The two ends of a channel that preserves packet boundaries (socketpair(2)).
final class SocketPair: Sendable {
    let near: Descriptor
    let far: Descriptor

    /// Returns nil if the process has no free descriptors; errno has the reason.
    init?() {
        var numbers: [CInt] = [-1, -1]
        guard socketpair(AF_UNIX, CInt(SOCK_SEQPACKET.rawValue | SOCK_CLOEXEC.rawValue), 0, &numbers) == 0 else {
            return nil
        }
        near = Descriptor(owning: numbers[0])
        far = Descriptor(owning: numbers[1])
    }

    /// Returns the descriptor that was passed in at the far end; nil if there was none.
    func receive() -> Descriptor? {
        var number: CInt = -1
        let count = CUsbmuxd_receive_descriptor(near.number, &number)
        return count > 0 && number >= 0 ? Descriptor(owning: number) : nil
    }
}
