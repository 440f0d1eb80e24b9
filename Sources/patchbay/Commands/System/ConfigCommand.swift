import ArgumentParser
import Client
import FoundationEssentials
import Model

struct ConfigCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "config",
        abstract: "Check a configuration file, and show the configuration in effect.",
        discussion: """
              patchbay config show
              patchbay config check ./patchbay.toml
            """,
        subcommands: [ConfigShowCommand.self, ConfigCheckCommand.self]
    )
}

struct ConfigShowCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "show",
        abstract: "Show each key with its effective value and the source of the value.",
        discussion: """
            The values are those of the running broker. A value that applies after a restart is shown too.

              patchbay config show
              patchbay config show --json | jq '.configuration[].key'
            """
    )

    @OptionGroup var format: JSONOption
    @OptionGroup var options: GlobalOptions

    func run() async throws {
        let entries = try await options.client.configuration()
        if format.json { return try options.output.document(ListResponse(entries)) }
        try options.output.table(Self.table(of: entries))
    }

    static func table(of entries: [ConfigurationEntry]) -> Table {
        Table(
            of: entries,
            [
                .init("KEY", \.key), .init("VALUE", .flexible) { Console.plain($0.value ?? "-") },
                .init("SOURCE", .flexible, style: { $0.pending == nil ? .plain : .yellow }) { entry in
                    let pending = entry.pending.map { "; \($0) after a restart" } ?? ""
                    return Console.plain((entry.place ?? entry.source.rawValue) + pending)
                },
            ]
        )
    }
}

struct ConfigCheckCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "check",
        abstract: "Check a configuration file and the profiles; print every error.",
        discussion: """
            Runs `patchbayd --check-config` of the same version, so no broker is needed. Exits with 78 after errors.

              patchbay config check
              patchbay config check ./patchbay.toml
            """
    )

    @Argument(
        help: ArgumentHelp("Check this file. Default: the file that patchbayd would read.", valueName: "file")
    )
    var file: String?

    func run() throws {
        let arguments = ["--check-config"] + (file.map { ["--config", $0] } ?? [])
        try ProgramStarter.replaceProcess(by: [try ConfigurationFileCheck.daemon()] + arguments)
    }
}
