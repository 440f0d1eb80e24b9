import Model

/// The result of one check of `patchbay doctor`.
struct Check: Encodable, Equatable {
    enum Verdict: String, Encodable {
        case ok
        /// Patchbay works, possibly with limits.
        case warn
        /// Patchbay cannot work.
        case fail

        var style: ANSIStyle {
            switch self {
            case .ok: .green
            case .warn: .yellow
            case .fail: .red
            }
        }
    }

    let name: String
    let verdict: Verdict
    let detail: String
    /// The command that fixes a finding.
    var hint: String?

    static func ok(_ name: String, _ detail: String) -> Check { Check(name: name, verdict: .ok, detail: detail) }

    static func warn(_ name: String, _ detail: String, try hint: String? = nil) -> Check {
        Check(name: name, verdict: .warn, detail: detail, hint: hint)
    }

    static func fail(_ name: String, _ detail: String, try hint: String? = nil) -> Check {
        Check(name: name, verdict: .fail, detail: detail, hint: hint)
    }
}

/// The results of all checks, in order.
struct DoctorReport: Encodable {
    let checks: [Check]

    init(checks: [Check]) { self.checks = checks }

    /// Returns the report with commands that this machine has.
    func adapted(by command: MachineCommand) -> DoctorReport {
        DoctorReport(
            checks: checks.map { check in
                var check = check
                check.hint = check.hint.map(command.adapted)
                return check
            }
        )
    }

    /// Combines the broker's checks with the checks of this machine. Skips the sources that are turned off.
    ///
    /// - Parameters:
    ///   - broker: The checks of the broker.
    ///   - sources: The sources of the broker; nil if the broker does not respond.
    ///   - usbmuxd: The checks of usbmuxd.
    ///   - network: The checks of Avahi and of the network.
    ///   - machine: The other checks.
    init(
        broker: [Check],
        sources: [SourceStatus]?,
        usbmuxd: () -> [Check],
        network: () -> [Check],
        machine: [Check] = []
    ) {
        func isOff(_ name: String) -> Bool { sources?.contains { $0.name == name && $0.state == .off } == true }
        // Both know of another program at the API's port, and this machine also knows which one.
        let api = BrokerPart.api.rawValue
        var checks = broker.filter { check in check.name != api || !machine.contains { $0.name == api } }
        if !isOff("usbmuxd") { checks += usbmuxd() }
        if !isOff("bonjour") { checks += network() }
        self.checks = checks + machine
    }
}
