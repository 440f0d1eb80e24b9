import CLinux
import CUsbmuxd
import Glibc
import Model
package import Sockets

/// Asks usbmuxd through libusbmuxd 2.0, for those who would rather trust the library that every other tool uses.
///
/// Used are its list, its Connect and its BUID. Never its events: `usbmuxd_events_subscribe` leaks a descriptor at each
/// reconnect, spins when usbmuxd hangs up, and with `UNIX:` addresses misses a restart. Its calls block and share
/// unguarded globals, so all of them are made on one thread, one after the other: a phone that does not answer Connect
/// holds the others up for the 5 s that the library waits.
///
/// Thread safety: the address is an environment variable to the library. It is set on that thread, before a call, and only
/// when it differs; a process that uses one address sets it once or, started with it, never.
package final class LibusbmuxdClient: UsbmuxClient {
    private static let thread = CallThread(named: "patchbay-libmux")
    private static let queueFull = SocketError.words(for: EAGAIN)

    private let address: UsbmuxAddress
    private let budget: MuxBudget
    private let descriptorLimit: CInt
    private let clock: any Clock<Duration>

    /// Calls are refused when the next descriptor would be `descriptorLimit` or more. The library uses select(2), and one
    /// from FD_SETSIZE on aborts the process; 64 less, for those that other threads open between the check and the call.
    package init(
        address: UsbmuxAddress,
        budget: MuxBudget = MuxBudget(),
        descriptorLimit: CInt = 1024 - 64,
        clock: any Clock<Duration> = ContinuousClock()
    ) {
        self.address = address
        self.budget = budget
        self.descriptorLimit = descriptorLimit
        self.clock = clock
    }

    package func listDevices() async throws -> [UsbmuxDeviceRecord] {
        try await call("ListDevices") {
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
        try await call("ReadBUID") {
            var buid: UnsafeMutablePointer<CChar>?
            let status = usbmuxd_read_buid(&buid)
            defer { free(buid) }
            guard status == 0, let buid else { throw Self.error(status, of: "usbmuxd_read_buid", request: "ReadBUID") }
            return String(cString: buid)
        }
    }

    package func connect(deviceID: UInt32, port: UInt16) async throws -> Carrier {
        let lease = try budget.lease()
        let handover = Handover()
        try await call("Connect") {
            let number = usbmuxd_connect(deviceID, port)
            guard number >= 0 else { throw Self.error(number, of: "usbmuxd_connect", request: "Connect") }
            CLinux_set_nonblocking(number)
            CLinux_set_close_on_exec(number)
            handover.put(Descriptor(owning: number))
        }
        guard let descriptor = handover.take() else { throw UsbmuxError.closed(request: "Connect") }
        return Carrier(descriptor: descriptor, halfClose: .destroys, lease: lease)
    }

    /// Makes a call on the thread, again while usbmuxd's accept queue is full: the library gives up at once there.
    private func call<Value: Sendable>(
        _ request: String,
        _ body: @escaping @Sendable () throws -> Value
    ) async throws -> Value {
        try await Deadline(limit: .seconds(10), clock: clock).run(request) { [self] in
            var pause = Duration.milliseconds(1)
            while true {
                do {
                    return try await Self.thread.call { [address, descriptorLimit] in
                        try Self.checkDescriptors(below: descriptorLimit)
                        Self.point(at: address)
                        return try body()
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

    /// The kernel gives the lowest free number, so one taken and closed again tells which one the library would get.
    private static func checkDescriptors(below limit: CInt) throws(UsbmuxError) {
        let next = eventfd(0, CInt(EFD_CLOEXEC))
        guard next >= 0 else { throw .failed(call: "eventfd", words: SocketError.words(for: errno)) }
        close(next)
        if next >= limit { throw .descriptors(next: next) }
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
