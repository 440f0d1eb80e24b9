import ArgumentParser
import Client
import FoundationEssentials
import Model
import SystemIO

struct PairCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "pair",
        abstract: "Create an invite that an agent or a device can redeem.",
        discussion: """
            Prints a QR code and the pairing string, a countdown, and each redemption. The invite ends when it is \
            redeemed, when it expires, or with Ctrl-C. Any reader of the code can redeem the invite.

              patchbay pair
              patchbay pair --app com.example.shop --scope registry.read
              patchbay pair --remote
              patchbay pair --bearer --host lab.example.com
              patchbay pair --read-only
              patchbay pair --tool screenshot --tool get_elements
              patchbay pair --socket ~/agent/patchbay.sock --app com.example.shop
              patchbay pair --expires-in 2m --grant-ttl 1d --idle-timeout 4h
              patchbay pair --detach --json | jq -r .pairing
            """
    )

    @OptionGroup var permissions: PermissionOptions
    @OptionGroup var target: InviteAudienceOptions
    @Option(
        help: ArgumentHelp("Expire the invite after this time: 90s, 10m, up to 24h. Default: 10m.", valueName: "time"),
        transform: { try DurationText.parse($0, upTo: InviteSpec.lifetimes.upperBound, as: "24h") }
    )
    var expiresIn: DurationText?
    @Option(help: ArgumentHelp("Allow this many redemptions, 1 to 100.", valueName: "count"))
    var uses = 1
    @Option(
        name: .customLong("grant-ttl"),
        help: ArgumentHelp("Expire grants after this time, up to 30d. Default: 8h.", valueName: "time"),
        transform: Self.grantTime
    )
    var grantTTL: DurationText?
    @Option(
        help: ArgumentHelp("Expire grants that are unused for this time, up to 30d. Default: 2h.", valueName: "time"),
        transform: Self.grantTime
    )
    var idleTimeout: DurationText?
    @Option(
        help: ArgumentHelp(
            "Create a unix socket for one grant, instead of an invite.",
            discussion: "Every client on it has the grant, and no client is an owner, also not uid 0 in a container. "
                + "Another broker is selected with --broker or $PATCHBAY_SOCKET.",
            valueName: "path"
        ),
        completion: .file()
    )
    var socket: String?
    @Flag(help: "Print the invite and exit; the invite stays open.")
    var detach = false
    @OptionGroup var format: JSONOption
    @OptionGroup var options: BrokerOptions

    @Sendable private static func grantTime(_ argument: String) throws -> DurationText {
        try DurationText.parse(argument, upTo: InviteSpec.grantLifetimes.upperBound, as: "30d")
    }

    func validate() throws {
        if !InviteSpec.allowedUses.contains(uses) { throw ValidationError("--uses must be 1 to 100.") }
        if socket?.isEmpty == true { throw ValidationError("--socket needs the path of a new socket.") }
        if socket != nil, target.use != nil || uses != 1 || expiresIn != nil || detach {
            throw ValidationError(
                "--socket creates no invite; leave out --remote, --bearer, --device, --uses, --expires-in and --detach."
            )
        }
        if socket != nil, permissions.scopes.contains(.admin) {
            throw ValidationError("--socket never gives admin, because every client of the socket would be an owner.")
        }
        if target.isDevice, permissions.isLimited {
            throw ValidationError("--device gives only endpoint.register; leave out the other limits and scopes.")
        }
    }

    func run() async throws {
        ProcessLimits.disableCoreDumps()
        let client = try options.client
        let permissions =
            target.isDevice
            ? Permissions([.endpointRegister], on: .all)
            : try await permissions.permissions(client, command: "patchbay pair")
        if let socket {
            let pairing = SocketPairing(
                path: socket,
                permissions: permissions,
                lifetimeSeconds: grantTTL?.seconds,
                idleSeconds: idleTimeout?.seconds
            )
            let grant = try await pairing.create(client)
            if format.json { return try options.output.jsonLine(PairEvent(event: "socket", grant: grant)) }
            return try options.output.line(pairing.text(grant))
        }
        let spec = InviteSpec(
            permissions,
            use: target.use,
            maxUses: uses,
            lifetimeSeconds: expiresIn?.seconds,
            grantLifetimeSeconds: grantTTL?.seconds,
            grantIdleSeconds: idleTimeout?.seconds,
            host: target.host
        )
        let issued = try await client.invite(spec)
        let output = options.output
        if detach { return try show(issued, output) }
        do {
            try await SignalHandler.cancelOnSignal { try await keepOpen(issued, client: client, output: output) }
        } catch is CancellationError {
            try await close(issued, client)
            // `close` has printed the message.
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
                addresses: issued.addresses,
                token: issued.token
            )
            return try output.jsonLine(record)
        }
        let string = issued.pairing ?? issued.token
        try output.line(
            PairingInstructions.text(issued, string: string, terminal: output.size, isColoured: output.isColoured)
        )
        try output.line(Self.summary(of: issued.invite))
    }

    private func keepOpen(_ issued: IssuedInvite, client: PatchbayClient, output: Console) async throws {
        let isJSON = format.json
        let statusLine = StatusLine(errors: .errors(), isShown: output.isTerminal && !isJSON)
        try show(issued, output)
        let monitor = InviteMonitor(client: client, issued: issued) { grant in
            statusLine.clear()
            if isJSON { return try output.jsonLine(PairEvent(event: "joined", grant: grant)) }
            try output.line("Joined: \(AccessTables.line(grant)).")
        } left: { seconds in
            statusLine.show("Open for \(Formatting.countdown(seconds)); press Ctrl-C to end the invite.")
        }
        defer { statusLine.clear() }
        let invite = try await monitor.watch()
        statusLine.clear()
        if isJSON { try output.jsonLine(PairEvent(event: "closed", invite: invite, endReason: invite.endReason)) }
        if let error = Self.failure(of: invite) { throw error }
        if !isJSON { try output.line("Closed. Revoke a grant with `patchbay revoke ID`.") }
    }

    /// Revokes the invite, so that no unattended invite stays open.
    private func close(_ issued: IssuedInvite, _ client: PatchbayClient) async throws {
        do {
            _ = try await client.revoke(issued.invite.id)
        } catch let error as ClientError {
            throw Self.revocationFailure(error, leavingOpen: issued.invite)
        }
        if !format.json { try? options.output.line("Closed: the invite is revoked.") }
    }

    /// Describes an open invite.
    static func summary(of invite: Invite) -> String {
        let seconds = invite.expiresAt.timeIntervalSince(invite.createdAt)
        return "The invite \(invite.id) is open for \(Formatting.duration(seconds)), until "
            + "\(Formatting.clock(invite.expiresAt)), or \(Formatting.count(invite.maxUses, "redemption"))."
    }

    /// The error for an invite that could not be revoked.
    static func revocationFailure(_ error: ClientError, leavingOpen invite: Invite, now: Date = Date()) -> CLIError {
        let end = Formatting.duration(max(0, invite.expiresAt.timeIntervalSince(now)))
        return CLIError(
            status: ExitStatus(for: error),
            message: "invite \(invite.id) stays open for \(end) because it could not be revoked: \(error)",
            hint: "patchbay revoke \(invite.id), when the broker runs again"
        )
    }

    /// The error for an invite that ended without a redemption; nil if the invite was redeemed.
    static func failure(of invite: Invite) -> CLIError? {
        switch invite.endReason {
        case nil, .spent: nil
        case .expired where invite.useCount > 0: nil
        case .expired: CLIError.temporary("the invite expired unused", try: "patchbay pair")
        case .revoked:
            CLIError.failed("the invite was revoked", try: "patchbay audit --last 5")
        case .burnt:
            CLIError.notPermitted(
                "the invite is locked after \(invite.failedAttempts) wrong secrets, possibly an attack",
                try: "see the sources with patchbay audit --last 10, then run patchbay pair"
            )
        }
    }
}

/// One line of `patchbay pair --json`: an event and its members.
struct PairEvent: Encodable {
    /// `open`, `joined` or `closed`; `socket` for a socket with its grant.
    var event: String
    var invite: Invite?
    /// `PATCHBAY:1:…`, a secret; only in the event `open`.
    var pairing: String?
    /// The broker's addresses for other machines; only in the event `open`.
    var addresses: [String]?
    /// `pbi_…`, a secret; only in the event `open`.
    var token: String?
    var grant: Grant?
    /// The reason of the event `closed`.
    var endReason: Invite.EndReason?
}
