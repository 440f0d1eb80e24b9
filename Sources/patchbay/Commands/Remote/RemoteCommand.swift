import ArgumentParser
import Client
import Model

struct RemoteCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "remote",
        abstract: "Let other machines reach the broker over TLS.",
        discussion: """
            The remote listener is off by default. Clients need a grant, as on this machine. No remote client is an \
            owner, and none can read secrets. The state is kept when the broker restarts; api.remote in the \
            configuration has precedence.

              patchbay remote on
              patchbay remote on 192.168.1.7:7283
              patchbay remote off
              patchbay remote status --json
            """,
        subcommands: [RemoteOnCommand.self, RemoteOffCommand.self, RemoteStatusCommand.self],
        defaultSubcommand: RemoteStatusCommand.self
    )
}

struct RemoteOnCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "on",
        abstract: "Turn the remote listener on.",
        discussion: """
            Listens on \(RemoteSpec.standardAddress) by default. Use [::]:7283 for IPv6 and IPv4.

              patchbay remote on
              patchbay remote on [::]:7283
            """
    )

    @Argument(help: ArgumentHelp("Listen on this numeric address and port.", valueName: "address:port"))
    var address: String?
    @OptionGroup var format: JSONOption
    @OptionGroup var options: GlobalOptions

    func run() async throws {
        let status = try await options.client.setRemote(RemoteSpec(enabled: true, address: address))
        try RemoteStatusText(status).show(format, on: options.output)
    }
}

struct RemoteOffCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "off",
        abstract: "Turn the remote listener off and close its connections.",
        discussion: """
            The broker keeps its key and the grants of remote clients for the next `patchbay remote on`.

              patchbay remote off
            """
    )

    @OptionGroup var format: JSONOption
    @OptionGroup var options: GlobalOptions

    func run() async throws {
        let status = try await options.client.setRemote(RemoteSpec(enabled: false))
        try RemoteStatusText(status).show(format, on: options.output)
    }
}

struct RemoteStatusCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "status",
        abstract: "Show the remote listener: its addresses, key pin, connections and refused handshakes.",
        discussion: """
              patchbay remote status
              patchbay remote status --json | jq -r .pin
            """
    )

    @OptionGroup var format: JSONOption
    @OptionGroup var options: GlobalOptions

    func run() async throws {
        try RemoteStatusText(try await options.client.remote()).show(format, on: options.output)
    }
}
