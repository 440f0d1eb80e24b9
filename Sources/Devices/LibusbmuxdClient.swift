import CLinux
import CUsbmuxd
import Glibc
import Model
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
