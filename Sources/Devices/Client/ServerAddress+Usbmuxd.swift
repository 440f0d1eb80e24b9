import Glibc
import Model
import SystemIO

/// The address of usbmuxd.
extension ServerAddress {
    /// The socket path of usbmuxd's own packages.
    package static let standardUsbmuxd = ServerAddress.unix(path: "/var/run/usbmuxd")
    package static let usbmuxdVariable = "USBMUXD_SOCKET_ADDRESS"

    /// - Throws: `UsbmuxError.badAddress` for any form other than `UNIX:/path`, `/path`, `host:port` and `[v6]:port`.
    package init(usbmuxd text: String) throws(UsbmuxError) {
        guard let address = ServerAddress(text) else { throw .badAddress(SanitizedText(text, limit: 200).text) }
        self = address
    }

    /// Reads the address from the environment; the standard address if the variable is unset or empty.
    package init(usbmuxdIn environment: [String: String]) throws(UsbmuxError) {
        guard let text = environment[Self.usbmuxdVariable], !text.isEmpty else {
            self = .standardUsbmuxd
            return
        }
        try self.init(usbmuxd: text)
    }

    /// The form that libusbmuxd accepts (`socket_connect_unix` requires the prefix).
    var libusbmuxdForm: String {
        switch self {
        case .unix(let path): "UNIX:\(path)"
        case .tcp: description
        }
    }

    /// Connects to usbmuxd. Has no timeout: the caller sets one and cancels.
    ///
    /// - Throws: `UsbmuxError`; `CancellationError`.
    func connectToUsbmuxd() async throws -> Descriptor {
        do {
            return try await connect()
        } catch SocketError.failed(_, _, let code) {
            throw usbmuxdError(code)
        } catch let error as SocketError {
            throw UsbmuxError.failed(call: "connecting to usbmuxd at \(self)", message: "\(error)")
        }
    }

    /// The error of a connect to usbmuxd that failed with an errno.
    func usbmuxdError(_ code: CInt) -> UsbmuxError {
        switch code {
        case ENOENT, ENOTDIR, ECONNREFUSED: .absent(self, errno: code)
        case EACCES, EPERM: .permissionDenied(self)
        default: .failed(call: "connecting to usbmuxd at \(self)", message: SocketError.message(for: code))
        }
    }
}
