import ArgumentParser
import Client
import Glibc
import Model

struct DoctorCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "doctor",
        abstract: "Check the requirements of Patchbay on this machine and print fixes.",
        discussion: """
            Works without a running broker. Checks only the broker with --broker ssh://. Skips the sources that the broker's configuration turns off. Exits with 1 \
            if a check fails; warnings do not count.

            Grants and invites expire by a clock that never goes backwards. If the system clock was far ahead and is \
            correct again, `patchbay status` reports it: check `date`, then run --fix-clock. Expired grants stay \
            expired, and grants from the time of the wrong clock end.

              patchbay doctor
              patchbay doctor --fix-clock
              patchbay doctor --json | jq '.checks[] | select(.verdict != "ok")'
            """
    )

    @Flag(help: "Reset the broker's clock to the system clock instead of running the checks.")
    var fixClock = false
    @OptionGroup var format: JSONOption
    @OptionGroup var options: GlobalOptions

    func run() async throws {
        let client = try options.client
        if fixClock { return try await resetClock(client) }
        let broker = await BrokerCheck(client: client).run()
        let report =
            switch client.address {
            // The broker uses the usbmuxd and the Avahi of its own machine.
            case .ssh, .remote: DoctorReport(checks: broker.checks)
            case .unix, .loopback:
                DoctorReport(
                    broker: broker,
                    usbmuxd: { UsbmuxdCheck().run() },
                    network: { AvahiCheck().run() + MulticastCheck().run() }
                )
            }
        let checks = report.checks
        let output = options.output
        if format.json {
            try output.document(report)
        } else {
            for check in checks { try output.line(Self.text(check, isColoured: output.isColoured)) }
        }
        if checks.contains(where: { $0.verdict == .fail }) { throw ExitCode(ExitStatus.error.rawValue) }
    }

    private func resetClock(_ client: PatchbayClient) async throws {
        let result = try await client.recoverClock()
        if format.json { return try options.output.document(result) }
        let ended = result.ended.sorted().joined(separator: ", ")
        try options.output.line(
            "The broker uses the system clock again. "
                + (ended.isEmpty ? "No grant or invite ended." : "Ended: \(ended).")
        )
    }

    static func text(_ check: Check, isColoured: Bool) -> String {
        let verdict = check.verdict.style.paint(check.verdict.rawValue.padded(to: 4), isOn: isColoured)
        let line = "\(verdict)  \(check.name.padded(to: 9))  \(Console.plain(check.detail))"
        return check.hint.map { "\(line)\n      try: \(Console.plain($0))" } ?? line
    }
}

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
    /// The next step: a command to type or an instruction.
    var hint: String?
}

/// The results of all checks, in order.
struct DoctorReport: Encodable {
    let checks: [Check]

    init(checks: [Check]) { self.checks = checks }

    /// Combines the broker's checks with the checks of this machine. Skips the sources that are turned off.
    init(
        broker: (checks: [Check], sources: [SourceStatus]?),
        usbmuxd: () -> Check,
        network: () -> [Check]
    ) {
        func isOff(_ name: String) -> Bool { broker.sources?.contains { $0.name == name && $0.state == .off } == true }
        var checks = broker.checks
        if !isOff("usbmuxd") {
            let machine = usbmuxd()
            // udev starts usbmuxd when a device is connected, so a stopped usbmuxd is normal.
            if machine.verdict == .ok { checks = checks.map { $0.name == "usbmuxd" ? $0.ignored : $0 } }
            checks.append(machine)
        }
        if !isOff("bonjour") { checks += network() }
        self.checks = checks
    }
}

extension Check {
    fileprivate var ignored: Check { Check(name: name, verdict: .ok, detail: detail) }
}
