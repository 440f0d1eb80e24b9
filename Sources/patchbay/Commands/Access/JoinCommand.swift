import ArgumentParser
import Client
import FoundationEssentials
import Glibc
import Model

struct JoinCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "join",
        abstract: "Redeem an invite of `patchbay pair` and store the grant.",
        discussion: """
            Reads the pairing string from standard input or a hidden prompt, never from an argument. Stores the grant \
            in $XDG_STATE_HOME/patchbay/grants with mode 0600; --print writes its token to standard output instead. \
            The invite is redeemed at the broker in the pairing string, unless --broker or --socket is given. Commands \
            with --broker use the stored grant of that broker.

              patchbay join -
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
    @Option(help: ArgumentHelp("Set the grant's name in the broker. Default: user@host.", valueName: "name"))
    var name: String?
    @OptionGroup var options: GlobalOptions

    /// Redemption attempts after a lost response. The same client key returns the same grant for 60 s.
    private static let attempts = 5

    func run() async throws {
        let words = (source == "-" ? [] : [source]) + rest
        try SecretInput.refuse(arguments: words, what: "a pairing string", command: "patchbay join -")
        let text = try await SecretInput.line("Pairing string (not shown): ", command: "patchbay join -")
        let argument = try PairingArgument(text)
        let store = prints ? nil : try CredentialStore(environment: ProcessInfo.processInfo.environment)
        try store?.prepare()
        let named = options.namesBroker ? nil : argument.broker.map { PatchbayClient(address: $0) }
        let client = try named ?? options.unauthenticatedClient
        let issued = try await redeem(argument.invite, client)
        let output = options.output
        guard let store else { return try output.line(issued.token) }
        let credential = CredentialStore.Credential(
            broker: client.address.description,
            grant: issued.grant,
            token: issued.token
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

    private func redeem(_ invite: Secret, _ client: PatchbayClient) async throws -> IssuedGrant {
        var source = SystemRandomNumberGenerator()
        let key = Base62.random(count: 43, from: &source)
        let spec = RedemptionSpec(token: invite.reveal(), client: key, name: SanitizedText(name ?? Self.ownName))
        for _ in 1..<Self.attempts {
            do { return try await client.redeem(spec) } catch ClientError.connectionLost {
                // A restarting broker is polled: nothing announces that the socket listens again.
                try await ContinuousClock().sleep(for: .seconds(1))
            } catch ClientError.timedOut {
                // The timeout was the pause before the next attempt.
            }
        }
        return try await client.redeem(spec)
    }

    /// The default name of a grant: `user@host`.
    private static var ownName: String {
        var host = [CChar](repeating: 0, count: 256)
        gethostname(&host, host.count - 1)
        let user = ProcessInfo.processInfo.environment["USER"] ?? "\(geteuid())"
        return "\(user)@\(String(decoding: host.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self))"
    }
}

/// The input of `patchbay join`: a pairing string of this machine, or an invite token.
struct PairingArgument {
    /// The broker that issued the invite; nil for the broker at the default socket.
    let broker: BrokerAddress?
    let invite: Secret

    private static let lengthLimit = 256

    /// Parses the input.
    ///
    /// - Throws: `CLIError` without the input, because the input is a secret.
    init(_ text: String) throws(CLIError) {
        guard text.utf8.prefix(Self.lengthLimit + 1).count <= Self.lengthLimit else {
            throw Self.invalid("it has more than \(Self.lengthLimit) bytes")
        }
        if text.hasPrefix("pbi_") {
            self.init(broker: nil, invite: try Self.invite(text))
            return
        }
        guard text.hasPrefix("PATCHBAY:") else {
            throw Self.invalid("it does not start with PATCHBAY: or pbi_")
        }
        // The fields are counted from the end, because an IPv6 address contains colons.
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        guard parts.count >= 6, parts[1] == "1" else {
            throw Self.invalid("its version is not 1; use the same version of Patchbay on both sides")
        }
        let host = parts[2..<(parts.count - 3)].joined(separator: ":")
        guard let port = UInt16(parts[parts.count - 3]), port > 0 else {
            throw Self.invalid("its address is not HOST:PORT")
        }
        guard host == "127.0.0.1" || host == "[::1]", parts[parts.count - 2].isEmpty else {
            throw CLIError(
                status: .notPermitted,
                message: "the pairing string is for a broker on another machine, \(SanitizedText(host)); "
                    + "this version cannot join over the network, and the invite was not sent",
                hint: "run patchbay join - on that machine"
            )
        }
        let invite = try Self.invite(String(parts[parts.count - 1]))
        self.init(broker: .loopback(host: host.filter { $0 != "[" && $0 != "]" }, port: port), invite: invite)
    }

    private init(broker: BrokerAddress?, invite: Secret) {
        self.broker = broker
        self.invite = invite
    }

    /// Checks the checksum here, because the broker counts a mistyped token as a failed attempt.
    private static func invite(_ text: String) throws(CLIError) -> Secret {
        guard TokenFormat.parts(of: text)?.kind == .invite else {
            throw invalid("its invite is mistyped or incomplete; copy the whole string")
        }
        return Secret(text)
    }

    private static func invalid(_ reason: String) -> CLIError {
        .usage(
            "the pairing string is invalid: \(reason)",
            try: "run patchbay pair on the broker's machine for a new one"
        )
    }
}
