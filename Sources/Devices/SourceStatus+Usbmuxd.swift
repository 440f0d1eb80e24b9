import Model

extension SourceStatus {
    private static let restart = "`sudo systemctl restart usbmuxd`; one that hangs needs `sudo pkill -KILL usbmuxd`"

    /// For a usbmuxd that is there and owes an answer.
    init(silentFor time: Duration, at address: UsbmuxAddress) {
        self.init(
            name: "usb",
            state: .starting,
            detail: "usbmuxd at \(address) has not answered for \(time.components.seconds) s",
            remedy: Self.restart
        )
    }

    /// How the cable is, in words, and what a person can do about it.
    ///
    /// The fault is why usbmuxd is not heard, nil when it is or was not tried yet; the number of phones is nil as long as
    /// it has not named them all.
    init(of address: UsbmuxAddress, fault: UsbmuxError?, phones: Int?) {
        self.init(name: "usb", state: .starting, detail: "usbmuxd at \(address) is being asked for its phones")
        if let phones {
            state = .ok
            detail =
                switch phones {
                case 0: "usbmuxd at \(address) runs, no phone is plugged in"
                case 1: "usbmuxd at \(address) shows 1 phone"
                default: "usbmuxd at \(address) shows \(phones) phones"
                }
            return
        }
        guard let fault else { return }
        switch fault {
        case .absent:
            state = .missing
            detail = "usbmuxd is not running at \(address)"
            remedy =
                address.path == nil
                ? "start usbmuxd there, or correct \(UsbmuxAddress.variable)"
                : "plug in a phone, which starts it; if it does not, `sudo apt install usbmuxd`"
        case .denied:
            state = .missing
            detail = "usbmuxd's socket \(address) may not be opened by this user"
            remedy = "`sudo chmod 0666 \(address)`, the mode that usbmuxd gives it"
        case .timedOut:
            detail = "usbmuxd at \(address) does not answer"
            remedy = Self.restart
        case .closed:
            detail = "usbmuxd at \(address) hangs up; it is tried again"
        case .badAddress, .result, .garbled, .limit, .failed:
            detail = "usbmuxd at \(address) cannot be used: \(fault)"
            remedy = "see what listens there, and whether \(UsbmuxAddress.variable) is right"
        }
    }
}
