import ArgumentParser
import Client
import Model

struct TeamCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "team",
        abstract: "Share endpoints and phones with the brokers of other hosts.",
        discussion: """
            The hosts of a team share one registry on etcd. Each broker lists the endpoints and phones of all hosts, \
            and reaches them through the broker of their host.

              patchbay team
              patchbay team init lab --etcd https://10.0.0.5:2379
              patchbay team invite
              patchbay team join -
            """,
        subcommands: [
            TeamStatusCommand.self, TeamInitCommand.self, TeamCertificateCommand.self, TeamInviteCommand.self,
            TeamInvitesCommand.self, TeamRevokeCommand.self, TeamJoinCommand.self, TeamLeaveCommand.self,
            TeamRemoveCommand.self, TeamAuthorityCommand.self,
        ],
        defaultSubcommand: TeamStatusCommand.self
    )
}

struct TeamStatusCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "status",
        abstract: "Show the team, the state of its hosts, and the servers of its registry.",
        discussion: """
              patchbay team status
              patchbay team status --json | jq -r '.hosts[].name'
            """
    )

    @OptionGroup var format: JSONOption
    @OptionGroup var options: GlobalOptions

    func run() async throws {
        try TeamStatusText(try await options.client.team.status()).show(format, on: options.output)
    }
}

struct TeamLeaveCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "leave",
        abstract: "Leave the team, and delete this host's key and certificates.",
        discussion: """
            Run `patchbay team remove` on the host with the certificate authority afterwards, so that the team no longer \
            lists this host. That host itself can leave only as the last one: its authority ends then.

              patchbay team leave
            """
    )

    @OptionGroup var options: GlobalOptions

    func run() async throws {
        let status = try await options.client.team.status()
        try await options.client.team.leave()
        for line in Self.text(after: status) { try options.output.line(line) }
    }

    /// Returns the text after leaving a team with this status. The authority has nothing to do for a host that it removed.
    static func text(after status: TeamStatus) -> [String] {
        let lines = ["Left the team \(status.team?.text ?? ""). The broker goes on without it."]
        guard let host = status.host, let authority = status.authority, host != authority,
            status.hosts.contains(where: { $0.name == host })
        else { return lines }
        return lines + ["On \(authority), remove this host: patchbay team remove \(host)"]
    }
}

struct TeamRemoveCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "remove",
        abstract: "Remove a host from the team; its connections to the other hosts end at once.",
        discussion: """
            Runs on the host with the certificate authority. The removed host can no longer read or write the registry.

              patchbay team remove lab3
            """
    )

    @Argument(help: ArgumentHelp("Remove the host with this name.", valueName: "host"))
    var host: HostName
    @OptionGroup var options: GlobalOptions

    func run() async throws {
        try await options.client.team.remove(host)
        try options.output.line("Removed \(host) from the team.")
    }
}
