import CLinux
import CUsbmuxd
import Glibc
import Model
import Synchronization
package import SystemIO

/// Asks usbmuxd through libusbmuxd 2.0, for those who would rather trust the library that every other tool uses.
///
/// Used are its list, its Connect and its BUID. Never its events: `usbmuxd_events_subscribe` leaks a descriptor at each
/// reconnect, spins when usbmuxd hangs up, and with `UNIX:` addresses misses a restart. Its calls block, share unguarded
/// globals and close what is not theirs, so all of them are made on one `IsolatedLibraryThread`, one after the other: a phone that
/// does not answer Connect holds the others up for the 5 s that the library waits.
///
/// Thread safety: the address is an environment variable to the library. It is set on that thread, before a call, and only
/// when it differs; a process that uses one address sets it once or, started with it, never.
package final class LibusbmuxdClient: UsbmuxClient {
    private static let thread = IsolatedLibraryThread(named: "patchbay-libmux")
    private static let queueFull = SocketError.words(for: EAGAIN)

    private let address: UsbmuxAddress
    private let budget: UsbmuxConnectionLimit
    private let clock: any Clock<Duration>

    /// The budget is shared with whoever else opens streams to the same usbmuxd.
    package init(
        address: UsbmuxAddress,
        budget: UsbmuxConnectionLimit = UsbmuxConnectionLimit(),
        clock: any Clock<Duration> = PollerClock()
    ) {
        self.address = address
        self.budget = budget
        self.clock = clock
    }

    package func listDevices() async throws -> [UsbmuxDeviceRecord] {
        try await call("ListDevices") { _ in
            var list: UnsafeMutablePointer<usbmuxd_device_info_t>?
            let count = usbmuxd_get_device_list(&list)
            // It says -1 (or -2) for everything, an absent usbmuxd included.
            guard count >= 0 else {
                throw UsbmuxError.failed(
                    call: "usbmuxd_get_device_list",
                    words: "it does not say why; usbmuxd may be absent"
                )
            }
            defer { usbmuxd_device_list_free(&list) }
            return UnsafeBufferPointer(start: list, count: Int(count)).compactMap(UsbmuxDeviceRecord.init)
        }
    }

    package func readBUID() async throws -> String {
        try await call("ReadBUID") { _ in
            var buid: UnsafeMutablePointer<CChar>?
            let status = usbmuxd_read_buid(&buid)
            defer { free(buid) }
            guard status == 0, let buid else { throw Self.error(status, of: "usbmuxd_read_buid", request: "ReadBUID") }
            return String(cString: buid)
        }
    }

    package func connect(deviceID: UInt32, port: UInt16) async throws -> Connection {
        let lease = try await budget.lease(within: .seconds(10), clock: clock)
        guard let reply = SocketPair() else {
            throw UsbmuxError.failed(call: "socketpair", words: SocketError.words(for: errno))
        }
        try await call("Connect", lending: reply.far.number) { lent in
            let number = usbmuxd_connect(deviceID, port)
            guard number >= 0 else { throw Self.error(number, of: "usbmuxd_connect", request: "Connect") }
            defer { close(number) }
            CLinux_set_nonblocking(number)
            // Nobody takes it where the caller has given up; then it is closed with the channel.
            guard CUsbmuxd_pass(lent, number) > 0 else { throw UsbmuxError.closed(request: "Connect") }
        }
        guard let descriptor = reply.take() else { throw UsbmuxError.closed(request: "Connect") }
        return Connection(descriptor: descriptor, halfClose: .destroys, lease: lease)
    }

    /// Makes a call on the thread, again while usbmuxd's accept queue is full: the library gives up at once there.
    private func call<Value: Sendable>(
        _ request: String,
        lending descriptor: CInt = -1,
        _ body: @escaping @Sendable (CInt) throws -> Value
    ) async throws -> Value {
        try await Deadline(limit: .seconds(10), clock: clock).run(request) { [address, clock] in
            var pause = Duration.milliseconds(1)
            while true {
                do {
                    return try await Self.thread.call(lending: descriptor) { lent in
                        Self.point(at: address)
                        return try body(lent)
                    }
                } catch UsbmuxError.failed(_, Self.queueFull) {
                    try await clock.sleep(for: pause)
                    pause = min(pause * 2, .milliseconds(50))
                }
            }
        }
    }

    private static func point(at address: UsbmuxAddress) {
        libusbmuxd_set_use_inotify(0)
        let text = address.libusbmuxdForm
        if let now = getenv(UsbmuxAddress.variable), String(cString: now) == text { return }
        setenv(UsbmuxAddress.variable, text, 1)
    }

    /// What a negative status of the library means.
    private static func error(_ status: CInt, of call: String, request: String) -> UsbmuxError {
        switch -status {
        case ECONNREFUSED: .result(.refused, request: request)
        case ENODEV: .result(.badDevice, request: request)
        // EBADF is what it says when nothing came for 5 s; its other reasons for it are lost.
        case EBADF, ETIMEDOUT: .timedOut(request: request, limit: .seconds(5))
        case EAGAIN: .failed(call: call, words: queueFull)
        default: .failed(call: call, words: SocketError.words(for: -status))
        }
    }
}

extension UsbmuxDeviceRecord {
    fileprivate init?(_ info: usbmuxd_device_info_t) {
        let text = withUnsafeBytes(of: info.udid) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
        guard info.handle != 0, let udid = UDID(text) else { return nil }
        let isCable = info.conn_type == CONNECTION_TYPE_USB
        self.init(
            deviceID: info.handle,
            udid: udid,
            transport: isCable ? .usb : .network,
            productID: isCable ? Int(info.product_id) : nil
        )
    }
}

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

/// Two ends of one channel that keeps packets apart (socketpair(2)).
final class SocketPair: Sendable {
    let near: Descriptor
    let far: Descriptor

    /// Nil when the process has no more descriptors; errno says so.
    init?() {
        var numbers: [CInt] = [-1, -1]
        guard socketpair(AF_UNIX, CInt(SOCK_SEQPACKET.rawValue | SOCK_CLOEXEC.rawValue), 0, &numbers) == 0 else {
            return nil
        }
        near = Descriptor(owning: numbers[0])
        far = Descriptor(owning: numbers[1])
    }

    /// The descriptor that was passed in at the far end; nil when none was.
    func take() -> Descriptor? {
        var number: CInt = -1
        let count = CUsbmuxd_take(near.number, &number)
        return count > 0 && number >= 0 ? Descriptor(owning: number) : nil
    }
}
