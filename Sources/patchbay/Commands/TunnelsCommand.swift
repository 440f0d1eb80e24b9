import ArgumentParser
import Client
import Model

struct TunnelsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "tunnels",
        abstract: "List the tunnels with what went through them; remove them.",
        discussion: """
              patchbay tunnels
              patchbay tunnels rm t3
              patchbay tunnels rm --all
            """,
        subcommands: [TunnelListCommand.self, TunnelRemoveCommand.self],
        defaultSubcommand: TunnelListCommand.self
    )
}

struct TunnelListCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list",
        abstract: "List the tunnels: where they listen, where they lead, whether that is there, and what they counted.",
        discussion: """
            A tunnel is `active`, `waiting` (what it leads to is not there now), or `failed` (it cannot listen).

              patchbay tunnels --json | jq '.tunnels[].statistics.bytesDown'
            """,
        aliases: ["ls"]
    )

    @OptionGroup var format: JSONOption
    @OptionGroup var options: GlobalOptions

    func run() async throws {
        let list = try await options.client.tunnels()
        let output = options.output
        if format.json { return try output.document(list) }
        if list.tunnels.isEmpty {
            return try output.line("No tunnel is open. `patchbay forward 9876` opens one to the phone on the cable.")
        }
        try output.table(TunnelTableView.table(of: list.tunnels))
    }
}
