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
