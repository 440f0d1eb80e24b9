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
