import ArgumentParser
import Client
import FoundationEssentials
import Model

struct DoctorCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "doctor",
        abstract: "Check the requirements of Patchbay on this machine and print fixes.",
        discussion: """
            Reports versions, and checks the broker, its configuration file, Avahi and its limits, other mDNS programs, network interfaces, \
            usbmuxd, attached phones, ports, the state folder, the clock and the limits of open files. Each finding has \
            the next step.

            Works without a running broker. Checks only the broker with --broker ssh://. Skips the sources that the \
            broker's configuration turns off. Exits with 1 if a check fails; warnings do not count.

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
        let report = await Self.report(broker, client)
        let checks = report.checks
        let output = options.output
        if format.json {
            try output.document(report)
        } else {
            for check in checks { try output.line(Self.text(check, isColoured: output.isColoured)) }
        }
        if checks.contains(where: { $0.verdict == .fail }) { throw ExitCode(ExitStatus.error.rawValue) }
    }

    /// Adds the checks of this machine to those of the broker.
    private static func report(
        _ broker: (checks: [Check], status: BrokerStatus?, isRunning: Bool),
        _ client: PatchbayClient
    ) async -> DoctorReport {
        switch client.address {
        // The broker uses the usbmuxd and the Avahi of its own machine.
        case .ssh, .remote: return DoctorReport(checks: broker.checks)
        case .unix, .loopback:
            let reading = await BrokerReading(broker.status, isRunning: broker.isRunning, from: client)
            let version = VersionCheck(broker: broker.status?.version, isRunning: broker.isRunning)
            let environment = ProcessInfo.processInfo.environment
            return DoctorReport(
                broker: [await version.run()] + broker.checks
                    + [await reading.configurationCheck(ofBrokerAt: client.address)] + reading.oauthChecks
                    + reading.deviceChecks,
                sources: broker.status?.sources,
                usbmuxd: reading.usbmuxdChecks,
                network: reading.networkChecks,
                machine: reading.machineChecks(socket: client.address.description, environment: environment)
            ).adapted(by: MachineCommand(broker: broker.status?.pid))
        }
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
