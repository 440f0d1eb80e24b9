import FoundationEssentials
import Model

/// Checks that usbmuxd is installed and its socket can be used.
struct UsbmuxdCheck {
    var environment = ProcessInfo.processInfo.environment
    var programs = Self.standardPrograms

    static let standardPrograms = ["/usr/sbin/usbmuxd", "/usr/local/sbin/usbmuxd", "/usr/bin/usbmuxd"]

    /// The address of usbmuxd for the programs of this environment.
    var path: String { Self.path(of: environment["USBMUXD_SOCKET_ADDRESS"] ?? "/var/run/usbmuxd") }

    /// Returns an address without the prefix `UNIX:`.
    static func path(of address: String) -> String {
        address.hasPrefix("UNIX:") ? String(address.dropFirst(5)) : address
    }

    func run() -> Check {
        let path = path
        guard path.hasPrefix("/") else {
            return .ok("usbmuxd socket", "USBMUXD_SOCKET_ADDRESS is \(path), not a Unix socket path; not checked")
        }
        let socket = UnixSocketStatus(path: path)
        let word = path.shellQuoted
        let mode = socket.access.map { String($0.mode, radix: 8) } ?? "?"
        switch socket.state {
        case .listening where socket.access.map({ $0.mode & 0o006 != 0o006 }) == true:
            return .warn(
                "usbmuxd socket",
                "\(path) has mode 0\(mode), so usbmuxd may refuse a broker of another user",
                try: "sudo chmod 0666 \(word)"
            )
        case .listening: return .ok("usbmuxd socket", "usbmuxd listens at \(path), mode 0\(mode)")
        case .notPermitted:
            return .fail(
                "usbmuxd socket",
                "no permission for usbmuxd's socket \(path)",
                try: "sudo chmod 0666 \(word)"
            )
        case .notASocket:
            return .fail(
                "usbmuxd socket",
                "\(path) is not a socket",
                try: "sudo rm \(word) && sudo systemctl restart usbmuxd"
            )
        // On Debian, udev starts usbmuxd with the first phone and stops usbmuxd with the last. The file may stay.
        case .absent, .dead:
            if programs.contains(where: { FileManager.default.isExecutableFile(atPath: $0) }) {
                return .ok("usbmuxd socket", "usbmuxd is installed; it runs while a phone is plugged in")
            }
            return .warn(
                "usbmuxd socket",
                "usbmuxd is not installed; phones on the cable are not detected",
                try: "sudo apt install usbmuxd"
            )
        }
    }
}
