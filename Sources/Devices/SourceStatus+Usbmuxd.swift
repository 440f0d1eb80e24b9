import Model

extension SourceStatus {
    private static let restart = "`sudo systemctl restart usbmuxd`; if it hangs, `sudo pkill -KILL usbmuxd`"

    /// Creates the status of a usbmuxd that is running but has not replied.
    init(silentFor time: Duration, at address: ServerAddress) {
        self.init(
            name: "usbmuxd",
            state: .starting,
            detail: "usbmuxd at \(address) has not answered for \(time.components.seconds) s",
            hint: Self.restart
        )
    }

    /// Creates the status of the USB source and the advice for the user.
    ///
    /// - Parameters:
    ///   - address: The address of usbmuxd.
    ///   - error: The reason why usbmuxd is unreachable; nil if connected or not tried yet.
    ///   - deviceCount: The number of devices; nil until usbmuxd has reported all of them.
    init(of address: ServerAddress, error: UsbmuxError?, deviceCount: Int?) {
        self.init(name: "usbmuxd", state: .starting, detail: "usbmuxd at \(address) is listing its phones")
        if let deviceCount {
            state = .ok
            detail =
                switch deviceCount {
                case 0: "usbmuxd at \(address) is running; no phone is plugged in"
                case 1: "usbmuxd at \(address) shows 1 phone"
                default: "usbmuxd at \(address) shows \(deviceCount) phones"
                }
            return
        }
        guard let error else { return }
        switch error {
        case .absent:
            state = .missing
            detail = "usbmuxd is not running at \(address)"
            hint =
                address.path == nil
                ? "start usbmuxd there, or correct \(ServerAddress.usbmuxdVariable)"
                : "plug in a phone, which starts it; if it does not, `sudo apt install usbmuxd`"
        case .permissionDenied:
            detail = "this user may not open usbmuxd's socket \(address)"
            hint = "`sudo chmod 0666 \(address)`, the mode that usbmuxd gives it"
        case .timedOut:
            detail = "usbmuxd at \(address) does not answer"
            hint = Self.restart
        case .closed:
            detail = "usbmuxd at \(address) closes connections at once; Patchbay retries"
            hint = Self.restart
        case .badAddress, .result, .malformedMessage, .failed:
            detail = "usbmuxd at \(address) cannot be used: \(error)"
            hint = "check which program listens there and whether \(ServerAddress.usbmuxdVariable) is right"
        }
    }
}
