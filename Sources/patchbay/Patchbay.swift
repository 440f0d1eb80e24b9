import ArgumentParser
import Model

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
            CommandGroup(name: "Looking", subcommands: [Status.self, List.self, Watch.self, Show.self, Devices.self]),
            CommandGroup(name: "Connecting", subcommands: [Forward.self, Tunnels.self, Iproxy.self, Stdio.self]),
            CommandGroup(
                name: "Announcing",
                subcommands: [Advertise.self, Advertisements.self, Add.self, Forget.self]
            ),
            CommandGroup(name: "Calling", subcommands: [Tools.self, Call.self, MCP.self]),
            CommandGroup(
                name: "Letting in",
                subcommands: [
                    Pair.self, Join.self, Invites.self, Grants.self, Revoke.self, Requests.self, Approve.self,
                    Deny.self, Secrets.self, Audit.self,
                ]
            ),
            CommandGroup(name: "Repairing", subcommands: [Doctor.self, Clocks.self]),
        ]
    )
}
