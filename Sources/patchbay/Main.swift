import ArgumentParser
import Client
import FoundationEssentials
import Glibc
import Model

/// The entry point. All logic is in `CommandRunner`, so that tests can call it.
@main
enum Main {
    static func main() async {
        // A closed pipe becomes an error of one write (EPIPE) instead of terminating the process.
        signal(SIGPIPE, SIG_IGN)
        exit(await CommandRunner.run(Array(CommandLine.arguments.dropFirst())))
    }
}

/// Parses a command line, runs the command, prints errors, and returns the exit code.
enum CommandRunner {
    static func run(_ arguments: [String]) async -> CInt {
        do {
            if let request = CompletionRequest(arguments) {
                try await complete(request, arguments)
                return ExitStatus.ok.rawValue
            }
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
            try LeaseCommand.refuseEmptyCommand(
                arguments,
                of: CommandSuggestion.command(in: arguments, below: Patchbay.self)
            )
            var command = try Patchbay.parseAsRoot(arguments)
            if var command = command as? any AsyncParsableCommand {
                try await command.run()
            } else {
                try command.run()
            }
            return ExitStatus.ok.rawValue
        } catch {
            return fail(await explained(error, arguments), arguments: arguments)
        }
    }

    /// Prints the candidates for a completion script. The parser throws its answer as an error.
    private static func complete(_ request: CompletionRequest, _ arguments: [String]) async throws {
        do { _ = try Patchbay.parseAsRoot(arguments) } catch {
            guard Patchbay.exitCode(for: error) == .success else { throw error }
            try Console.standard().line(await request.completed(Patchbay.message(for: error)))
        }
    }

    /// Appends the exit codes to a help text; returns any other text unchanged.
    static func completed(_ text: String) -> String {
        guard text.contains("USAGE: ") else { return BashCompletion.completed(text) }
        let end = text.lastIndex { !$0.isNewline } ?? text.startIndex
        return text[...end] + "\n\n" + ExitStatus.summary
    }

    /// Returns the error with the reason why the broker of this machine does not answer, if one is found.
    private static func explained(_ error: any Error, _ arguments: [String]) async -> any Error {
        let client = try? GlobalOptions.client(
            socket: BrokerHint.value(of: "--socket", in: arguments),
            broker: BrokerHint.value(of: "--broker", in: arguments)
        )
        let explained = await BrokerOutage(error, at: client?.address)?.explained() ?? error
        guard let clientError = error as? ClientError, clientError.isAboutAccess,
            let hint = AccessHint(
                arguments: arguments,
                address: client?.address,
                environment: ProcessInfo.processInfo.environment
            )
        else { return explained }
        let command = CommandSuggestion.command(in: arguments, below: Patchbay.self)
        return hint.completed(explained as? CLIError ?? CLIError(describing: explained, command: command))
    }

    private static func fail(_ error: any Error, arguments: [String]) -> CInt {
        if case let code as ExitCode = error { return code.rawValue }
        // ArgumentParser throws help and version texts like errors; they go to standard output.
        if !(error is CLIError), Patchbay.exitCode(for: error) == .success {
            try? Console.standard().line(completed(Patchbay.fullMessage(for: error)))
            return ExitStatus.ok.rawValue
        }
        let status = ExitStatus(for: error)
        if status == .outputClosed { return status.rawValue }
        var cliError = CLIError(
            describing: error is CLIError || error is ClientError
                ? error : UnknownOption.error(in: arguments, below: Patchbay.self) ?? error,
            command: CommandSuggestion.command(in: arguments, below: Patchbay.self)
        )
        cliError.hint = cliError.hint.map(BrokerHint(arguments: arguments).completed)
        if CLIErrorReport.isWanted(by: arguments) {
            try? Console.errors().jsonLine(CLIErrorReport(cliError))
        } else {
            Console.errors().printError(cliError)
        }
        return cliError.exitCode ?? status.rawValue
    }
}

/// The root command. `Commands` has the subcommands.
struct Patchbay: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "patchbay",
        abstract: "Find debug servers in development builds of apps and forward stable local addresses to them.",
        discussion: """
            The commands talk to the broker, the daemon patchbayd, which discovers apps on the network and on USB.

              patchbay                              show what runs, and what to type next
              patchbay status                       show the state of the broker
              patchbay list                         list the endpoints
              patchbay forward 9876                 forward a local port to a phone
              patchbay pair                         give an agent or a device access
              patchbay help exit-codes              list the exit codes for scripts
            """,
        version: VersionCommand.text,
        groupedSubcommands: [
            CommandGroup(
                name: "Inspect",
                subcommands: [
                    StatusCommand.self, DashboardCommand.self, ListCommand.self, WatchCommand.self, ShowCommand.self,
                    OpenCommand.self, DevicesCommand.self, ProfilesCommand.self,
                ]
            ),
            CommandGroup(
                name: "Forward",
                subcommands: [
                    ForwardCommand.self, ReverseCommand.self, TunnelsCommand.self, IproxyCommand.self,
                    UsbmuxCommand.self, StdioCommand.self,
                ]
            ),
            CommandGroup(
                name: "Advertise",
                subcommands: [
                    AdvertiseCommand.self, AdvertisementsCommand.self, AddCommand.self, RemoveCommand.self,
                ]
            ),
            CommandGroup(
                name: "Agents",
                subcommands: [
                    ToolsCommand.self, CallCommand.self, ActivityCommand.self, LogCommand.self, LeaseCommand.self,
                    LeasesCommand.self,
                    UnleaseCommand.self,
                    DebugCommand.self, MCPCommand.self,
                ]
            ),
            CommandGroup(
                name: "Access",
                subcommands: [
                    PairCommand.self, JoinCommand.self, AskCommand.self, BrokersCommand.self, LeaveCommand.self,
                    InvitesCommand.self,
                    GrantsCommand.self, RevokeCommand.self,
                    RequestsCommand.self, ApproveCommand.self, DenyCommand.self, UnapproveCommand.self,
                    SecretCommand.self,
                    AuditCommand.self, RemoteCommand.self, TeamCommand.self,
                ]
            ),
            CommandGroup(
                name: "Maintenance",
                subcommands: [DoctorCommand.self, ConfigCommand.self, LogsCommand.self, VersionCommand.self]
            ),
        ]
    )

    /// Shows the overview. Without a broker, the error says how to start one.
    func run() async throws {
        let output = Console.standard()
        let overview: Overview
        do { overview = try await Overview(GlobalOptions.client(socket: nil, broker: nil)) } catch {
            try output.line("Patchbay finds the debug servers of apps. `patchbay --help` lists its commands.")
            throw error
        }
        try output.line(overview.text(width: output.width, isColoured: output.isColoured))
    }
}
