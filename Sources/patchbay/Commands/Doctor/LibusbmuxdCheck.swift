import Glibc
import Model

/// Checks that libusbmuxd, which other tools use, lists the same phones on the cable as the broker's own client.
struct LibusbmuxdCheck {
    /// The phones on the cable that the broker lists.
    let devices: Set<String>
    /// Returns the phones that libusbmuxd lists; nil without the library or usbmuxd.
    var readDevices: () -> Set<String>? = Self.listed

    func run() -> Check {
        guard let listed = readDevices() else {
            return .ok(
                "libusbmuxd",
                "libusbmuxd lists no phones here, so its list was not compared with the broker's"
            )
        }
        let unknown = listed.subtracting(devices).sorted()
        let missing = devices.subtracting(listed).sorted()
        if let udid = unknown.first {
            return .warn(
                "libusbmuxd",
                "libusbmuxd lists \(udid), but the broker does not",
                try: "sudo systemctl restart patchbayd"
            )
        }
        if let udid = missing.first {
            return .warn(
                "libusbmuxd",
                "the broker lists \(udid), but libusbmuxd does not, so iproxy and idevice_id cannot use the phone",
                try: "sudo systemctl restart usbmuxd"
            )
        }
        return .ok("libusbmuxd", "libusbmuxd and the broker list the same phones: \(devices.count)")
    }

    /// The layout of `usbmuxd_device_info_t` (usbmuxd.h, libusbmuxd 2.0).
    private enum Layout {
        static let udid = 8
        static let udidLength = 44
        static let connectionType = 52
        static let stride = 256
        /// `CONNECTION_TYPE_USB`
        static let usb: UInt32 = 1
    }

    /// Asks the library with dlopen(3), so that the command needs the library for this check only.
    private static func listed() -> Set<String>? {
        guard let library = dlopen("libusbmuxd-2.0.so.6", RTLD_NOW) else { return nil }
        defer { dlclose(library) }
        // Both functions take the address of the pointer to the list.
        typealias List = @convention(c) (UnsafeMutablePointer<UnsafeMutableRawPointer?>) -> CInt
        guard let list = dlsym(library, "usbmuxd_get_device_list"),
            let free = dlsym(library, "usbmuxd_device_list_free")
        else { return nil }
        var devices: UnsafeMutableRawPointer?
        // dlsym(3) returns an untyped pointer; the type is that of the two functions in usbmuxd.h.
        let count = unsafeBitCast(list, to: List.self)(&devices)
        defer { _ = unsafeBitCast(free, to: List.self)(&devices) }
        guard count >= 0, let first = devices else { return nil }
        let all = (0..<Int(count)).compactMap { index -> String? in
            let device = UnsafeRawBufferPointer(start: first + index * Layout.stride, count: Layout.stride)
            guard device.load(fromByteOffset: Layout.connectionType, as: UInt32.self) == Layout.usb else { return nil }
            let text = device[Layout.udid..<Layout.udid + Layout.udidLength].prefix { $0 != 0 }
            return SanitizedText(String(decoding: text, as: UTF8.self)).text
        }
        return Set(all)
    }
}
