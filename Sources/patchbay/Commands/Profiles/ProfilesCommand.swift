import ArgumentParser
import Client
import Model

struct ProfilesCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "profiles",
        abstract: "List the profiles of debug servers, and check a profile file.",
        discussion: """
            A profile describes a plain HTTP debug server: how to recognise it, and its tools.

              patchbay profiles
              patchbay profiles check my-server.toml --port 8080
            """,
        subcommands: [ProfileListCommand.self, ProfileCheckCommand.self],
        defaultSubcommand: ProfileListCommand.self
    )
}

struct ProfileListCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list",
        abstract: "List the profiles with their ports, files and numbers of tools.",
        discussion: """
            The broker reads the profiles at its start: the installed ones, and yours in the folder `profiles` next to \
            the configuration file.

              patchbay profiles --json | jq '.profiles[].file'
            """,
        aliases: ["ls"]
    )

    @OptionGroup var format: ListOptions
    @OptionGroup var options: GlobalOptions

    func run() async throws {
        let profiles = try await options.client.profiles()
        try format.show(
            profiles,
            id: \.name,
            table: Self.table(of: profiles),
            ifEmpty: "No profiles. `make install` installs those of Patchbay.",
            on: options
        )
    }

    static func table(of profiles: [ProfileSummary]) -> Table {
        Table(
            of: profiles,
            [
                .init("NAME", \.name), .init("TITLE", .flexible, \.title),
                .init("PORTS", .optional) { $0.ports.isEmpty ? "-" : $0.ports.map { "\($0)" }.joined(separator: ", ") },
                .init("TOOLS", .optional) { "\($0.toolCount)" }, .init("FILE", .flexible) { Console.plain($0.file) },
            ]
        )
    }
}
