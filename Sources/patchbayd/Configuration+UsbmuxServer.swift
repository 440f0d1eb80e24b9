import Devices
import Glibc

/// Two addresses that must not be the same: where usbmuxd is, and where its clients are served.
extension Configuration {
    /// Where usbmuxd listens.
    /// - Throws: `ConfigurationError.badAddress`.
    func usbmuxdAddress(_ environment: [String: String]) throws(ConfigurationError) -> UsbmuxAddress {
        do {
            guard let configured = devices.usbmuxd else { return try UsbmuxAddress(environment: environment) }
            return try UsbmuxAddress(configured)
        } catch {
            throw .badAddress(what: "\(error)")
        }
    }

    /// The path of the socket at which usbmuxd's clients are served; nil where they are not.
    /// - Throws: `ConfigurationError.badAddress`.
    func facadePath(_ environment: [String: String]) throws(ConfigurationError) -> String? {
        guard let text = devices.facade else { return nil }
        guard let path = (try? UsbmuxAddress(text))?.path else {
            throw .badAddress(
                what:
                    "devices.facade must be \"unix:/path\", a unix socket: its mode keeps other users from your phones"
            )
        }
        guard devices.enabled else {
            throw .badAddress(
                what: "devices.facade shows phones, and devices.enabled = false hides them; remove one of them"
            )
        }
        if let usbmuxd = try usbmuxdAddress(environment).path, Self.place(of: usbmuxd) == Self.place(of: path) {
            throw .badAddress(
                what: "devices.facade and usbmuxd's address are both \(path), so Patchbay would wait for itself; set "
                    + "devices.usbmuxd to usbmuxd's own socket (\(UsbmuxAddress.standard)), or devices.facade to another path"
            )
        }
        return path
    }

    /// One spelling for one file, whether or not it is there: /var/run is a link to /run.
    private static func place(of path: String) -> String {
        let end = path.lastIndex(of: "/") ?? path.startIndex
        let folder = end == path.startIndex ? "/" : String(path[..<end])
        guard let real = realpath(folder, nil) else { return path }
        defer { free(real) }
        return "\(String(cString: real))/\(path[path.index(after: end)...])"
    }
}
