import ArgumentParser
import Client
import FoundationEssentials
import Model
import SystemIO

struct PairCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "pair",
        abstract: "Open a window in which an agent or a device can join, and show how.",
        discussion: """
            Shows a QR code and the same as a string, counts down, and says who joined. The window closes when it is used \
            up, when its time is over, or with Ctrl-C. Whoever sees the code first can use it: show it to nobody else.

              patchbay pair
              patchbay pair --app com.example.shop --scope registry.read --for 2m
              patchbay pair --detach --json | jq -r .pairing
            """
    )

    @OptionGroup var wanted: PermissionOptions
    @Option(
        name: .customLong("for"),
        help: ArgumentHelp("How long it is open: 90s, 10m, up to 24h. Default: 10m.", valueName: "time")
    )
    var lifetime: DurationArgument?
    @Option(help: ArgumentHelp("How many may join, 1 to 100.", valueName: "count"))
    var uses = 1
    @Option(
        name: .customLong("grant-for"),
        help: ArgumentHelp("How long who joins is let in, up to 30d. Default: 8h.", valueName: "time")
    )
    var grantLifetime: DurationArgument?
    @Option(help: ArgumentHelp("How long a grant may rest unused, up to 30d. Default: 2h.", valueName: "time"))
    var idle: DurationArgument?
    @Flag(help: "Return at once and leave the window open.")
    var detach = false
    @OptionGroup var format: JSONOption
    @OptionGroup var options: GlobalOptions

    func run() async throws {
        CoreDump.forbid()
        let client = try options.client
        let spec = InviteSpec(
            try await wanted.permissions(client, command: "patchbay pair"),
            uses: uses,
            lifetime: lifetime?.count,
            grantLifetime: grantLifetime?.count,
            grantIdle: idle?.count
        )
        let issued = try await client.invite(spec)
        let output = options.output
        if detach { return try show(issued, output) }
        do {
            try await SignalHandler.watch { try await keepOpen(issued, client, output) }
        } catch is CancellationError {
            try await close(issued, client)
            // What happened is said already.
            throw ExitCode(ExitStatus.interrupted.rawValue)
        } catch is BrokenPipe {
            try await close(issued, client)
            throw BrokenPipe()
        }
    }

    private func show(_ issued: IssuedInvite, _ output: Console) throws {
        if format.json {
            let record = PairEvent(
                event: "open",
                invite: issued.invite,
                pairing: issued.pairing,
                token: issued.token
            )
            return try output.record(record)
        }
        let string = issued.pairing ?? issued.token
        try output.line(
            PairingInstructions.text(issued, string: string, width: output.width, isColoured: output.isColoured)
        )
    }

    private func keepOpen(_ issued: IssuedInvite, _ client: PatchbayClient, _ output: Console) async throws {
        let isJSON = format.json
        let ticker = StatusLine(errors: .errors(), isShown: output.isTerminal && !isJSON)
        try show(issued, output)
        if !isJSON { try output.line(Self.promise(issued.invite)) }
        let window = InviteMonitor(client: client, issued: issued) { grant in
            ticker.clear()
            if isJSON { return try output.record(PairEvent(event: "joined", grant: grant)) }
            try output.line("Joined: \(AccessTables.line(grant)).")
        } left: { seconds in
            ticker.show("Open for \(Formatting.countdown(seconds)); Ctrl-C closes it.")
        }
        defer { ticker.clear() }
        let invite = try await window.watch()
        ticker.clear()
        if isJSON { try output.record(PairEvent(event: "closed", invite: invite, end: invite.end)) }
        if let complaint = Self.complaint(about: invite) { throw complaint }
        if !isJSON { try output.line("Closed. `patchbay revoke ID` ends a grant.") }
    }

    /// Takes the invite back, so that nothing stays open that nobody looks at.
    private func close(_ issued: IssuedInvite, _ client: PatchbayClient) async throws {
        do {
            _ = try await client.revoke(issued.invite.id)
        } catch let error as ClientError {
            throw Self.complaint(about: error, leavingOpen: issued.invite)
        }
        if !format.json { try? options.output.line("Closed: nobody can join any more.") }
    }

    private static func promise(_ invite: Invite) -> String {
        let seconds = invite.expires.timeIntervalSince(invite.created)
        return
            "Open for \(Formatting.duration(seconds)) and \(Formatting.count(invite.uses, "redeemer")), then it closes."
    }

    /// What to do about an invite that could not be taken back.
    static func complaint(about error: ClientError, leavingOpen invite: Invite, now: Date = Date()) -> CLIError {
        let end = Formatting.duration(max(0, invite.expires.timeIntervalSince(now)))
        return CLIError(
            status: ExitStatus(for: error),
            message: "the invite \(invite.id) stays open for \(end) more, as it could not be taken back: \(error)",
            remedy: "patchbay revoke \(invite.id), as soon as the broker is back"
        )
    }

    /// What is wrong with how it closed; nil when somebody joined.
    static func complaint(about invite: Invite) -> CLIError? {
        switch invite.end {
        case nil, .spent: nil
        case .expired where invite.used > 0: nil
        case .expired: CLIError(status: .temporary, message: "nobody joined in time", remedy: "patchbay pair")
        case .revoked:
            CLIError(status: .error, message: "somebody took the invite back", remedy: "patchbay audit --last 5")
        case .burnt:
            CLIError(
                status: .notPermitted,
                message:
                    "the invite is burnt: \(invite.wrong) wrong secrets were tried on it, so somebody may be guessing",
                remedy: "patchbay audit --last 10 shows from where; then patchbay pair"
            )
        }
    }
}

/// One line of `patchbay pair --json`: what happened, with the members that belong to it.
struct PairEvent: Encodable {
    /// `open`, `joined` or `closed`.
    var event: String
    var invite: Invite?
    /// `PATCHBAY:1:…`, a secret; only when it opens.
    var pairing: String?
    /// `pbi_…`, a secret; only when it opens.
    var token: String?
    var grant: Grant?
    /// Why it closed.
    var end: Invite.End?
}
