import FoundationEssentials

/// Whether phones on the cable can be reached.
struct UsbmuxdCheck {
    var environment = ProcessInfo.processInfo.environment
    var programs = ["/usr/sbin/usbmuxd", "/usr/local/sbin/usbmuxd", "/usr/bin/usbmuxd"]

    func run() -> Check {
        let address = environment["USBMUXD_SOCKET_ADDRESS"] ?? "/var/run/usbmuxd"
        let path = address.hasPrefix("UNIX:") ? String(address.dropFirst(5)) : address
        guard path.hasPrefix("/") else {
            return check(.ok, "USBMUXD_SOCKET_ADDRESS names \(address), which is not a file to look at")
        }
        switch UnixSocketStatus(path: path).state {
        case .listening: return check(.ok, "usbmuxd listens at \(path)")
        case .notPermitted:
            return check(.fail, "you may not use usbmuxd's socket \(path)", "check its mode with ls -l \(path)")
        case .notASocket: return check(.fail, "\(path) is not a socket", "remove it and restart usbmuxd")
        // Debian's udev starts usbmuxd with the first phone and stops it with the last; the file may stay.
        case .absent, .dead:
            if programs.contains(where: { FileManager.default.isExecutableFile(atPath: $0) }) {
                return check(.ok, "usbmuxd is installed and not running, as usual while no phone is plugged in")
            }
            return check(.warn, "usbmuxd is not installed; phones on the cable stay unseen", "apt install usbmuxd")
        }
    }

    private func check(_ verdict: Check.Verdict, _ detail: String, _ remedy: String? = nil) -> Check {
        Check(name: "usbmuxd", verdict: verdict, detail: detail, remedy: remedy)
    }
}
