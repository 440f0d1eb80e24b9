import ArgumentParser
import Client
import Glibc
import Model

struct DoctorCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "doctor",
        abstract: "Check what Patchbay needs on this machine, and say how to get what is missing.",
        discussion: """
            Works with the broker down as well, and leaves out what the broker is told not to use. Ends with 1 when a check failed; warnings do not count.

              patchbay doctor
              patchbay doctor --json | jq '.checks[] | select(.verdict != "ok")'
            """
    )

    @OptionGroup var format: JSONOption
    @OptionGroup var options: GlobalOptions

    func run() async throws {
        let client = try options.client
        let examination = await DoctorReport(
            broker: BrokerCheck(client: client).run(),
            usbmuxd: { UsbmuxdCheck().run() },
            network: { AvahiCheck().run() + MulticastCheck().run() }
        )
        let checks = examination.checks
        let output = options.output
        if format.json {
            try output.document(examination)
        } else {
            for check in checks { try output.line(Self.text(check, isColoured: output.isColoured)) }
        }
        if checks.contains(where: { $0.verdict == .fail }) { throw ExitCode(ExitStatus.error.rawValue) }
    }

    static func text(_ check: Check, isColoured: Bool) -> String {
        let verdict = check.verdict.style.paint(check.verdict.rawValue.padded(to: 4), isOn: isColoured)
        let line = "\(verdict)  \(check.name.padded(to: 9))  \(Console.plain(check.detail))"
        return check.remedy.map { "\(line)\n      try: \(Console.plain($0))" } ?? line
    }
}

/// One thing that `patchbay doctor` looked at.
struct Check: Encodable, Equatable {
    enum Verdict: String, Encodable {
        case ok
        /// It works, or will; there is something to know.
        case warn
        /// It keeps Patchbay from its work.
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
    /// What to type or do.
    var remedy: String?
}

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
