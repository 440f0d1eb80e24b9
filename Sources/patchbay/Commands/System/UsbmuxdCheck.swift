import FoundationEssentials

/// Checks that usbmuxd is installed and its socket can be used.
struct UsbmuxdCheck {
    var environment = ProcessInfo.processInfo.environment
    var programs = ["/usr/sbin/usbmuxd", "/usr/local/sbin/usbmuxd", "/usr/bin/usbmuxd"]

    func run() -> Check {
        let address = environment["USBMUXD_SOCKET_ADDRESS"] ?? "/var/run/usbmuxd"
        let path = address.hasPrefix("UNIX:") ? String(address.dropFirst(5)) : address
        guard path.hasPrefix("/") else {
            return check(.ok, "USBMUXD_SOCKET_ADDRESS is \(address), not a Unix socket path; not checked")
        }
        switch UnixSocketStatus(path: path).state {
        case .listening: return check(.ok, "usbmuxd listens at \(path)")
        case .notPermitted:
            return check(.fail, "no permission for usbmuxd's socket \(path)", hint: "check the mode with ls -l \(path)")
        case .notASocket: return check(.fail, "\(path) is not a socket", hint: "remove the file and restart usbmuxd")
        // On Debian, udev starts usbmuxd with the first phone and stops usbmuxd with the last. The file may stay.
        case .absent, .dead:
            if programs.contains(where: { FileManager.default.isExecutableFile(atPath: $0) }) {
                return check(.ok, "usbmuxd is installed; it runs while a phone is plugged in")
            }
            return check(
                .warn,
                "usbmuxd is not installed; phones on the cable are not detected",
                hint: "apt install usbmuxd"
            )
        }
    }

    private func check(_ verdict: Check.Verdict, _ detail: String, hint: String? = nil) -> Check {
        Check(name: "usbmuxd socket", verdict: verdict, detail: detail, hint: hint)
    }
}
