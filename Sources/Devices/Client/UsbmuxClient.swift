import Glibc
package import SystemIO

/// What Patchbay asks of usbmuxd.
///
/// The role that one conformance suite holds both conformers to: `NativeUsbmuxClient`, the default, and
/// `LibusbmuxdClient`. Neither tells about changes: that is `DeviceMonitor`'s work, with either of them.
package protocol UsbmuxClient: Sendable {
    /// The phones that usbmuxd shows now, in its order. Throws `UsbmuxError`.
    func listDevices() async throws -> [UsbmuxDeviceRecord]

    /// A stream to a TCP port of a phone.
    ///
    /// A DeviceID means nothing to another run of usbmuxd; whoever keeps one proves afterwards that it was the same run.
    /// - Throws: `UsbmuxError`, or `CancellationError`.
    func connect(deviceID: UInt32, port: UInt16) async throws -> Connection

    /// The identifier that usbmuxd gave this machine, with which phones know it. Throws `UsbmuxError`.
    func readBUID() async throws -> String
}

/// Why something that was asked of usbmuxd was not had.
package enum UsbmuxError: Error, Hashable {
    /// Text that is no address of usbmuxd.
    case badAddress(String)
    /// Nothing listens there (ENOENT, ECONNREFUSED), which is normal while no phone is plugged in.
    case absent(UsbmuxAddress, errno: CInt)
    /// The socket is there and may not be opened by us.
    case denied(UsbmuxAddress)
    /// It hung up instead of answering.
    case closed(request: String)
    /// It did not answer in time.
    case timedOut(request: String, limit: Duration)
    /// It answered with a result other than "ok".
    case result(UsbmuxResult, request: String)
    /// What came is not what usbmuxd sends; the text says what is wrong with it.
    case garbled(String)
    /// So many streams through usbmuxd are open or being opened already.
    case limit(Int)
    /// A system or library call failed; the words are what it said.
    case failed(call: String, words: String)
}

extension UsbmuxError {
    /// Whether it only says that usbmuxd does not run, or no longer.
    var isEnd: Bool {
        switch self {
        case .absent, .closed: true
        default: false
        }
    }
}

extension UsbmuxError: CustomStringConvertible {
    package var description: String {
        switch self {
        case .badAddress(let text):
            "\"\(text)\" is not an address of usbmuxd; write UNIX:/path, /path, host:port or [v6]:port"
        case .absent(let address, let errno):
            "usbmuxd is not running at \(address) (\(SocketError.words(for: errno))); plug in a phone, or install it with "
                + "`sudo apt install usbmuxd`"
        case .denied(let address):
            "usbmuxd's socket \(address) may not be opened by this user; its mode should be 0666"
        case .closed(let request):
            "usbmuxd hung up instead of answering \(request); it may be stopping: try again"
        case .timedOut(let request, let limit):
            "no answer to \(request) within \(limit.components.seconds) s; unplug the phone and plug it in again, or restart "
                + "usbmuxd"
        case .result(let result, let request):
            "usbmuxd answered \(request) with \(result)"
        case .garbled(let fault):
            "what came is not from usbmuxd: \(fault); see what listens on its socket"
        case .limit(let limit):
            "\(limit) streams through usbmuxd are open already, and with many more it would stop; close some and try again"
        case .failed(let call, let words):
            "\(call) failed (\(words))"
        }
    }
}
