import ArgumentParser
import Client
import FoundationEssentials
import Model

struct TeamInviteCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "invite",
        abstract: "Print the pairing string with which hosts join the team, each once.",
        discussion: """
            Runs on the host with the certificate authority. The string is a secret until its hosts have joined. Paste \
            it on each host: patchbay team join -

              patchbay team invite
              patchbay team invite --address lab1.example.com
              patchbay team invite --hosts 50 --for 24h --host 'lab*' > invite.txt
            """
    )

    @Option(
        help: ArgumentHelp(
            "Name this address in the string.",
            discussion: "Default: the first address of the team listener.",
            valueName: "address"
        )
    )
    var address: String?
    @Option(
        help: ArgumentHelp(
            "Let this many hosts join. Default: one, or one for each --host.",
            valueName: "count"
        )
    )
    var hosts: Int?
    @Option(
        name: .customLong("for"),
        help: ArgumentHelp("Let the invite expire after this time, up to 24h. Default: 10m.", valueName: "time"),
        transform: { try DurationText.parse($0, upTo: TeamInviteSpec.lifetimes.upperBound, as: "24h") }
    )
    var lifetime: DurationText?
    @Option(
        help: ArgumentHelp("Admit only hosts with this name, where * is any text; repeat it.", valueName: "name")
    )
    var host: [String] = []
    @OptionGroup var format: JSONOption
    @OptionGroup var options: GlobalOptions

    /// The text below the string for a person. A pipe gets the string only.
    static let nextStep = "On each new host, type `patchbay team join -` and paste the string at the prompt."

    func validate() throws {
        if let hosts, !TeamInviteSpec.hostCounts.contains(hosts) {
            throw ValidationError("--hosts is 1 to \(TeamInviteSpec.hostCounts.upperBound).")
        }
        if let text = host.first(where: { !TeamInviteSpec.isPattern($0) }) {
            throw ValidationError("\"\(text)\" is not the name of a host; a name has a-z, 0-9 and hyphens.")
        }
        guard host.count <= TeamInviteSpec.nameLimit else {
            throw ValidationError("--host is possible \(TeamInviteSpec.nameLimit) times; use a pattern such as 'lab*'.")
        }
    }

    func run() async throws {
        let invite = try await options.client.team.invite(
            TeamInviteSpec(
                address: address,
                hosts: hosts ?? max(1, host.count),
                seconds: lifetime?.seconds,
                names: host.isEmpty ? nil : host
            )
        )
        if format.json { return try options.output.document(invite) }
        let output = options.output
        try output.line(invite.pairing)
        if output.isTerminal { try Console.errors().line(Self.nextStep) }
    }
}

struct TeamInvitesCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "invites",
        abstract: "List the open invites for hosts, without their secrets.",
        discussion: """
            Runs on the host with the certificate authority.

              patchbay team invites
            """
    )

    @OptionGroup var format: JSONOption
    @OptionGroup var options: GlobalOptions

    func run() async throws {
        let invites = try await options.client.team.invites()
        if format.json { return try options.output.document(ListResponse(invites)) }
        guard !invites.isEmpty else { return try options.output.line("No open invites.") }
        try options.output.table(Self.table(of: invites))
    }

    static func table(of invites: [OpenTeamInvite], now: Date = Date()) -> Table {
        Table(
            of: invites,
            [
                .init("ID", \.id), .init("EXPIRES") { Formatting.from(now, to: $0.expiresAt) },
                .init("USED") { "\($0.admitted.count) of \($0.hosts)" },
                .init("NAMES", .wraps) { $0.names.isEmpty ? "all" : $0.names.joined(separator: ", ") },
                .init("HOSTS", .wraps) { $0.admitted.map(\.text).joined(separator: ", ") },
            ]
        )
    }
}

struct TeamRevokeCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "revoke",
        abstract: "Revoke an open invite for hosts; those that joined with it stay.",
        discussion: """
            Runs on the host with the certificate authority. `patchbay team invites` has the IDs.

              patchbay team revoke 4hYt0aZk
            """
    )

    @Argument(help: ArgumentHelp("Revoke this invite.", valueName: "id"), completion: .objects(.teamInvites))
    var id: String
    @OptionGroup var options: GlobalOptions

    func run() async throws {
        try await options.client.team.revoke(invite: id)
        try options.output.line("Revoked the invite \(SanitizedText(id)).")
    }
}
