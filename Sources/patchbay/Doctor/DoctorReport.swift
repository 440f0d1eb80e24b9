import Model

/// Everything that was looked at, in order.
struct DoctorReport: Encodable {
    let checks: [Check]

    init(checks: [Check]) { self.checks = checks }

    /// What the broker says, and what this machine shows, without what the broker is told not to use.
    init(
        broker: (checks: [Check], sources: [SourceStatus]?),
        usbmuxd: () -> Check,
        network: () -> [Check]
    ) {
        func isOff(_ name: String) -> Bool { broker.sources?.contains { $0.name == name && $0.state == .off } == true }
        var checks = broker.checks
        if !isOff("usb") {
            let machine = usbmuxd()
            // usbmuxd that sleeps until a phone is plugged in is as it should be, whatever the broker misses.
            if machine.verdict == .ok { checks = checks.map { $0.name == "usb" ? $0.excused : $0 } }
            checks.append(machine)
        }
        if !isOff("bonjour") { checks += network() }
        self.checks = checks
    }
}

extension Check {
    fileprivate var excused: Check { Check(name: name, verdict: .ok, detail: detail) }
}
