import ArgumentParser
import Glibc
import Model

/// The program's door, kept empty so that everything behind it can be tested.
@main
enum Main {
    static func main() async {
        // A reader that goes away is an error of one write (EPIPE), not the end of the process.
        signal(SIGPIPE, SIG_IGN)
        exit(await CommandRunner.run(Array(CommandLine.arguments.dropFirst())))
    }
}

/// From a command line to an exit status: parses, runs, and says what went wrong.
enum CommandRunner {
    static func run(_ arguments: [String]) async -> CInt {
        do {
            if arguments == ["help", "exit-codes"] {
                try Console.standard().line(ExitStatus.table)
                return ExitStatus.ok.rawValue
            }
            try CommandSuggestion.check(arguments, against: Patchbay.self)
            try PortMapping.refuseNegative(arguments)
            try NegativeArgumentCheck.refuse(
                arguments,
                command: CommandSuggestion.command(in: arguments, below: Patchbay.self)
            )
            var command = try Patchbay.parseAsRoot(arguments)
            if var command = command as? any AsyncParsableCommand {
                try await command.run()
            } else {
                try command.run()
            }
            return ExitStatus.ok.rawValue
        } catch {
            return end(with: error, arguments)
        }
    }

    /// A help with the numbers that every verb may end with; anything else as it is.
    static func completed(_ text: String) -> String {
        guard text.contains("USAGE: ") else { return text }
        let end = text.lastIndex { !$0.isNewline } ?? text.startIndex
        return text[...end] + "\n\n" + ExitStatus.summary
    }

    private static func end(with error: any Error, _ arguments: [String]) -> CInt {
        if case let code as ExitCode = error { return code.rawValue }
        // Help and version are thrown by the parser like errors, and belong on standard output.
        if !(error is CLIError), Patchbay.exitCode(for: error) == .success {
            try? Console.standard().line(completed(Patchbay.fullMessage(for: error)))
            return ExitStatus.ok.rawValue
        }
        let status = ExitStatus(for: error)
        if status == .outputClosed { return status.rawValue }
        let complaint = CLIError(
            describing: error,
            command: CommandSuggestion.command(in: arguments, below: Patchbay.self)
        )
        if CLIErrorReport.isWanted(by: arguments) {
            try? Console.errors().record(CLIErrorReport(complaint))
        } else {
            Console.errors().complain(complaint)
        }
        return complaint.exitCode ?? status.rawValue
    }
}

/// The command line: one file per verb in `Commands`.
struct Patchbay: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "patchbay",
        abstract: "Find the debug servers inside your apps, and give each one an address that stays.",
        discussion: """
            The broker, patchbayd, watches the network and the cable; these commands ask it.

              patchbay status                       is the broker well?
              patchbay list                         what can be reached?
              patchbay forward 9876                 a local port to the one on the phone
              patchbay pair                         let an agent or a device in
              patchbay help exit-codes              what scripts can rely on
            """,
        version: Version.text,
        groupedSubcommands: [
            CommandGroup(
                name: "Looking",
                subcommands: [
                    StatusCommand.self, ListCommand.self, WatchCommand.self, ShowCommand.self, DevicesCommand.self,
                ]
            ),
            CommandGroup(
                name: "Connecting",
                subcommands: [ForwardCommand.self, TunnelsCommand.self, IproxyCommand.self, StdioCommand.self]
            ),
            CommandGroup(
                name: "Announcing",
                subcommands: [AdvertiseCommand.self, AdvertisementsCommand.self, AddCommand.self, ForgetCommand.self]
            ),
            CommandGroup(name: "Calling", subcommands: [ToolsCommand.self, CallCommand.self, MCPCommand.self]),
            CommandGroup(
                name: "Letting in",
                subcommands: [
                    PairCommand.self, JoinCommand.self, InvitesCommand.self, GrantsCommand.self, RevokeCommand.self,
                    RequestsCommand.self, ApproveCommand.self,
                    DenyCommand.self, SecretCommand.self, AuditCommand.self,
                ]
            ),
            CommandGroup(name: "Repairing", subcommands: [DoctorCommand.self, ClockCommand.self]),
        ]
    )
}
