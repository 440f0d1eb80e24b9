import ArgumentParser
import Client
import FoundationEssentials
import Glibc
import Model
import SystemIO
import Transport

struct TeamAuthorityCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "authority",
        abstract: "Back up the certificate authority of the team, and restore or move it.",
        discussion: """
            Both commands read and write the files of this machine, so they need sudo for a service. A backup is sealed \
            with a passphrase.

              patchbay team authority export lab.authority
              patchbay team authority import lab.authority
            """,
        subcommands: [TeamAuthorityExportCommand.self, TeamAuthorityImportCommand.self]
    )
}

/// The state folder of the broker, and the passphrase.
struct AuthorityOptions: ParsableArguments {
    @Argument(help: ArgumentHelp("The file of the backup.", valueName: "file"))
    var file: String
    @Option(
        help: ArgumentHelp(
            "The state folder of the broker.",
            discussion: "Default: that of the service for root, else that of this user.",
            valueName: "folder"
        )
    )
    var stateDirectory: String?

    /// - Throws: `CLIError` without a state folder.
    var folder: TeamAuthorityFolder {
        get throws(CLIError) {
            let environment = ProcessInfo.processInfo.environment
            guard let path = StateFolderCheck.path(configured: stateDirectory, socket: "", environment: environment)
            else {
                throw .configuration("the state folder is unknown", try: "name it with --state-directory")
            }
            return TeamAuthorityFolder(state: path)
        }
    }

    func passphrase(_ question: String, command: String) async throws(CLIError) -> String {
        try await SecretInput.line(question, command: command) { _ in true }
    }
}

struct TeamAuthorityExportCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "export",
        abstract: "Write the authority to a file that is sealed with a passphrase.",
        discussion: """
            Asks for the passphrase, or reads a line of standard input. Without the passphrase nobody can read the file, \
            also not you. The file has this host's key, too.

              patchbay team authority export lab.authority
            """
    )

    @OptionGroup var arguments: AuthorityOptions
    @OptionGroup var options: GlobalOptions

    func run() async throws {
        let command = "patchbay team authority export \(arguments.file.shellQuoted)"
        let backup = try arguments.folder.backup()
        let passphrase = try await arguments.passphrase("New passphrase (not shown): ", command: command)
        guard passphrase.utf8.count >= SealedText.minimumLength else {
            throw CLIError.usage(
                "a passphrase has at least \(SealedText.minimumLength) characters",
                try: "choose several random words, and run the command again"
            )
        }
        if isatty(STDIN_FILENO) == 1 {
            let again = try await arguments.passphrase("The passphrase again: ", command: command)
            guard again == passphrase else { throw CLIError.usage("the passphrases differ", try: command) }
        }
        let sealed = try SealedText(backup, with: passphrase)
        let path = arguments.file
        do { try AtomicFile.replace(path, with: try JSONCoding.encoder().encode(sealed)) } catch {
            throw CLIError.failed(
                "\(SanitizedText(path, limit: .max)) cannot be written: \(error)",
                try: "name another file"
            )
        }
        try options.output.line(
            "Wrote the authority to \(SanitizedText(path, limit: .max)). Keep file and passphrase apart."
        )
    }
}

struct TeamAuthorityImportCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "import",
        abstract: "Continue with the authority of a backup on this machine.",
        discussion: """
            On a machine without a team, this machine continues as the host of the backup, which must not run any more. A \
            member of the team keeps its name and gets the authority; remove the host that had it then. The broker \
            applies that at once, or when it starts.

              patchbay team authority import lab.authority
            """
    )

    @OptionGroup var arguments: AuthorityOptions
    @OptionGroup var options: GlobalOptions

    func run() async throws {
        let command = "patchbay team authority import \(arguments.file.shellQuoted)"
        guard let data = try? Data(contentsOf: URL(filePath: arguments.file)),
            let sealed = try? JSONCoding.decoder().decode(SealedText.self, from: data)
        else {
            throw CLIError.notFound(
                "\(SanitizedText(arguments.file, limit: .max)) cannot be read, or is no backup of an authority",
                try: "name a file of patchbay team authority export"
            )
        }
        let passphrase = try await arguments.passphrase("Passphrase (not shown): ", command: command)
        let text: String
        do { text = try sealed.open(with: passphrase) } catch { throw CLIError.failed("\(error)", try: command) }
        let outcome = try arguments.folder.restore(text)
        let isApplied = await Self.isApplied(outcome, options)
        for line in Self.text(after: outcome, isApplied: isApplied) { try options.output.line(line) }
    }

    /// Lets the broker use the files, as `patchbay team init` does.
    ///
    /// - Returns: False if the broker does not answer, or has another state folder than that of the files.
    private static func isApplied(_ outcome: TeamAuthorityFolder.Outcome, _ options: GlobalOptions) async -> Bool {
        guard let team = try? options.client.team, let saved = try? await team.status(), let name = saved.team,
            saved.host?.text == outcome.host, saved.authority == saved.host
        else { return false }
        guard saved.restartNeeded || saved.problem != nil else { return true }
        return (try? await team.create(TeamSpec(team: name)))?.restartNeeded == false
    }

    static func text(after outcome: TeamAuthorityFolder.Outcome, isApplied: Bool) -> [String] {
        let step = isApplied ? [] : [TeamStatusText.restart]
        switch outcome {
        case .restored(let host, let team):
            return ["This machine is the host \(host) of the team \(team)."] + step
        case .takenOver(let host, let previous):
            return ["\(host) has the authority of the team now."] + step
                + ["Remove the host that had it: patchbay team remove \(previous)"]
        }
    }
}
