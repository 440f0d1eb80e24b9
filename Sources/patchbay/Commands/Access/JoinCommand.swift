import ArgumentParser
import Client
import FoundationEssentials
import Model

struct JoinCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "join",
        abstract: "Redeem an invite of `patchbay pair` and store the grant.",
        discussion: """
            Reads the pairing string from standard input or a hidden prompt, never from an argument. The invite is \
            redeemed at the broker in the pairing string, unless --broker or --socket is given.

            A broker on another machine is stored under a name, for --broker NAME, with a key of its own. The invite \
            is sent only to the broker with the key pin of the pairing string. A grant for this machine is stored in \
            $XDG_STATE_HOME/patchbay/grants. --print writes the token of a grant to standard output instead.

              patchbay join -
              patchbay join - --as lab
              patchbay list --broker lab
              patchbay list --broker 127.0.0.1:7282
              patchbay join --print - < string.txt | agent --token-stdin
            """,
        aliases: ["login"]
    )

    @Argument(help: ArgumentHelp("Read standard input; the only accepted value.", valueName: "-"))
    var source = "-"
    @Argument(help: .hidden)
    var rest: [String] = []
    @Flag(name: .customLong("print"), help: "Print the grant's token and do not store the grant.")
    var prints = false
    @Option(
        name: .customLong("as"),
        help: ArgumentHelp("Store a broker on another machine under this name. Default: its host.", valueName: "name")
    )
    var brokerName: String?
    @Option(help: ArgumentHelp("Set the grant's name in the broker. Default: user@host.", valueName: "name"))
    var name: String?
    @OptionGroup var options: GlobalOptions

    func validate() throws {
        if let brokerName, !JoinedBroker.isName(brokerName) {
            throw ValidationError("--as must be 1 to \(JoinedBroker.nameLimit) of a-z, 0-9 and hyphens.")
        }
        if prints, brokerName != nil { throw ValidationError("--print and --as exclude each other.") }
    }

    func run() async throws {
        let words = (source == "-" ? [] : [source]) + rest
        try SecretInput.refuse(
            arguments: words,
            what: "a pairing string",
            command: "patchbay join -",
            replacing: Self.replacement(of: words.first ?? "")
        )
        // Before the input is read: of two commands that start together with one name, one has to fail.
        let known = (try? JoinedBrokerStore(environment: ProcessInfo.processInfo.environment).grants) ?? []
        let text = try await SecretInput.line("Pairing string (not shown): ", command: "patchbay join -") {
            (try? PairingArgument($0)) != nil
        }
        let argument = try PairingArgument(text)
        if case .remote(let host, let port, let pin) = argument.broker, !options.namesBroker {
            let join = RemoteJoin(host: host, port: port, pin: pin, invite: argument.invite, grantName: name)
            return try await run(join, known: known)
        }
        if brokerName != nil {
            throw CLIError.usage(
                "--as names a broker on another machine, and this invite is for this machine; it was not sent",
                try: "patchbay join -, without --as"
            )
        }
        let named = options.namesBroker ? nil : argument.broker.map { PatchbayClient(address: $0) }
        do {
            try await join(argument.invite, at: try named ?? options.unauthenticatedClient)
        } catch ClientError.brokerNotRunning(let path) where named != nil {
            throw Self.noLocalBroker(at: path)
        }
    }

    /// The commands on the broker's machine that replace an exposed invite. Its ID is no secret.
    static func replacement(of exposed: String) -> String {
        let invite = (try? PairingArgument(exposed)).flatMap { TokenFormat.parts(of: $0.invite.reveal())?.id }
        return "on the broker's machine, patchbay revoke \(invite ?? "ID") ends the exposed invite and patchbay pair "
            + "creates another"
    }

    /// The error for a pairing string of this machine where no broker runs. It may have been copied from another machine.
    static func noLocalBroker(at path: String) -> CLIError {
        let error = ClientError.brokerNotRunning(path: path)
        return CLIError(
            status: ExitStatus(for: error),
            message: "\(error), and the pairing string is for the broker's own machine",
            hint: "start patchbayd here, or run patchbay pair --remote on the broker's machine for another string"
        )
    }

    private func run(_ join: RemoteJoin, known: Set<String>) async throws {
        let output = options.output
        if prints { return try output.line(await join.token()) }
        let store = try JoinedBrokerStore(environment: ProcessInfo.processInfo.environment)
        let broker = try await join.join(as: brokerName, in: store, known: known)
        try output.line("Joined \(broker.name): \(AccessTables.line(broker.grant)).")
        try output.line("Use it with --broker \(broker.name): patchbay list --broker \(broker.name)")
    }

    private func join(_ invite: Secret, at client: PatchbayClient) async throws {
        let store = prints ? nil : try CredentialStore(environment: ProcessInfo.processInfo.environment)
        try store?.prepare()
        var redeemer = InviteRedeemer(client: client, name: name)
        if let store, let id = TokenFormat.parts(of: invite.reveal())?.id {
            redeemer.key = try store.redemptionKey(of: id)
        }
        let issued = try await redeemer.redeem(invite)
        guard let token = issued.token else {
            throw ClientError.invalidResponse(what: "the redemption", detail: "it has no token")
        }
        let output = options.output
        guard let store else { return try output.line(token) }
        let credential = CredentialStore.Credential(
            broker: client.address.description,
            grant: issued.grant,
            token: token
        )
        do {
            let file = try store.save(credential)
            try output.line("Joined: \(AccessTables.line(issued.grant)).")
            try output.line("The grant is stored in \(SanitizedText(file, limit: .max)), readable only by you.")
            try output.line("Use it with --broker \(credential.broker): patchbay list --broker \(credential.broker)")
            try output.line("Other programs send its token in the header Authorization: Bearer.")
        } catch let error as CLIError {
            throw CLIError(
                status: error.status,
                message: "\(error.message); the invite is spent and grant \(issued.grant.id) cannot be used",
                hint: "patchbay revoke \(issued.grant.id), then patchbay pair again"
            )
        }
    }
}

/// The input of `patchbay join`: a pairing string, or an invite token.
struct PairingArgument {
    /// The broker that issued the invite; nil for the broker at the default socket.
    let broker: BrokerAddress?
    let invite: Secret

    /// Parses the input.
    ///
    /// - Throws: `CLIError` without the input, because the input is a secret.
    init(_ text: String) throws(CLIError) {
        if text.utf8.count <= PairingString.lengthLimit, TokenFormat.parts(of: text)?.kind == .invite {
            (broker, invite) = (nil, Secret(text))
            return
        }
        guard !text.hasPrefix(TeamPairingString.prefix) else {
            throw .usage("this is the string of patchbay team invite", try: "patchbay team join -")
        }
        let pairing: PairingString
        do { pairing = try PairingString(text) } catch {
            throw Self.invalid(Self.reason(of: error), isLocal: text.contains("127.0.0.1") || text.contains("[::1]"))
        }
        invite = Secret(pairing.invite)
        if let pin = pairing.pin {
            broker = .remote(host: pairing.host, port: pairing.port, pin: pin)
            return
        }
        guard ["127.0.0.1", "::1"].contains(pairing.host) else {
            throw CLIError.notPermitted(
                "the pairing string is for a broker on another machine, \(SanitizedText(pairing.host)), and "
                    + "has no key pin; the invite was not sent",
                try: "run patchbay pair --remote on that machine for a new one"
            )
        }
        broker = .loopback(host: pairing.host, port: pairing.port)
    }

    private static func reason(of error: PairingString.ParseError) -> String {
        switch error {
        case .tooLong: "it has more than \(PairingString.lengthLimit) bytes"
        case .notAPairingString: "it is neither a complete invite nor a text that starts with \(PairingString.prefix)"
        case .unknownVersion: "its version is not 1; use the same version of Patchbay on both sides"
        case .incomplete: "it is incomplete; copy the whole string"
        case .invalidAddress: "its address is not HOST:PORT"
        case .invalidPin: "its key pin is mistyped or incomplete; copy the whole string"
        case .invalidInvite: "its invite is mistyped or incomplete; copy the whole string"
        }
    }

    private static func invalid(_ reason: String, isLocal: Bool) -> CLIError {
        .usage(
            "the pairing string is invalid: \(reason)",
            try: "paste the whole string again, or ask for a new one: patchbay pair\(isLocal ? "" : " --remote")"
        )
    }
}
