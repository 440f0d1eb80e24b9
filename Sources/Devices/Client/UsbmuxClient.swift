import Glibc
package import Model
package import SystemIO

/// Opens the streams to devices through usbmuxd.
///
/// One conformance suite tests both conformers: `NativeUsbmuxClient`, the default, and `LibusbmuxdClient`.
/// `DeviceMonitor` lists the devices, always with the native client.
package protocol UsbmuxClient: Sendable {
    /// Returns the method of a stream to a TCP port of a device, for the plan of `UsbmuxPlanner`.
    func method(for route: USBRoute, to handle: DeviceMonitor.Handle) -> ConnectPlan.Method

    /// The timeout of the plan.
    var connectTimeout: Duration { get }

    /// The limit of open streams, of which each phone has a share. A stream has a permit from its Connect until its close.
    var connectionLimit: FairLimiter<UDID> { get }
}

/// An error of a request to usbmuxd.
package enum UsbmuxError: Error, Hashable {
    /// The text is not a valid address of usbmuxd.
    case badAddress(String)
    /// Nothing listens at the address (ENOENT, ECONNREFUSED). Normal while no device is connected.
    case absent(ServerAddress, errno: CInt)
    /// This user may not open the socket.
    case permissionDenied(ServerAddress)
    /// usbmuxd closed the connection without a reply.
    case closed(request: String)
    /// usbmuxd did not reply in time.
    case timedOut(request: String, limit: Duration)
    /// usbmuxd replied with a result other than "ok".
    case result(UsbmuxResult, request: String)
    /// The received data is not a message of usbmuxd; the text names the problem.
    case malformedMessage(String)
    /// A system or library call failed; `words` holds its message.
    case failed(call: String, message: String)
}

extension UsbmuxError {
    /// True if the error only means that usbmuxd is not running or has stopped.
    var isDisconnect: Bool {
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
            "usbmuxd is not running at \(address) (\(SocketError.message(for: errno))); plug in a phone, or install it with "
                + "`sudo apt install usbmuxd`"
        case .permissionDenied(let address):
            "this user may not open usbmuxd's socket \(address); its mode should be 0666"
        case .closed(let request):
            "usbmuxd closed the connection before it answered \(request); it may be stopping: try again"
        case .timedOut(let request, let limit):
            "no answer to \(request) within \(limit.components.seconds) s; unplug the phone and plug it in again, or restart "
                + "usbmuxd"
        case .result(let result, let request):
            "usbmuxd answered \(request) with \(result)"
        case .malformedMessage(let problem):
            "invalid data from usbmuxd: \(problem); check which program listens on its socket"
        case .failed(let call, let message):
            "\(call) failed (\(message))"
        }
    }
}
