import ArgumentParser
import Glibc

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
