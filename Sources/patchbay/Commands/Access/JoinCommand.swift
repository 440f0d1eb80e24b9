import ArgumentParser
import Client
import FoundationEssentials
import Glibc
import Model

struct JoinCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "join",
        abstract: "Redeem what `patchbay pair` shows, and keep the grant.",
        discussion: """
            Reads the pairing string from standard input, or asks for it without showing it; never as an argument. The \
            grant goes into a file for you alone below $XDG_STATE_HOME/patchbay/grants, or with --print to standard \
            output. The invite goes to the broker that the string names, or to the one that --broker or --socket names. With \
            --broker every command uses the grant that is kept for that broker.

              patchbay join -
              patchbay list --broker 127.0.0.1:7282
              patchbay join --print - < string.txt | agent --token-stdin
            """
    )

    @Argument(help: ArgumentHelp("A hyphen, for standard input.", valueName: "-"))
    var source = "-"
    @Argument(help: .hidden)
    var rest: [String] = []
    @Flag(name: .customLong("print"), help: "Print the grant's token and keep nothing.")
    var prints = false
    @Option(help: ArgumentHelp("What the broker's owner will see; default user@host.", valueName: "name"))
    var name: String?
    @OptionGroup var options: GlobalOptions

    /// A lost answer is asked for again with the same key, which brings the same grant for a minute.
    private static let attempts = 5

    func run() async throws {
        let words = (source == "-" ? [] : [source]) + rest
        try SecretInput.refuse(arguments: words, what: "a pairing string", command: "patchbay join -")
        let text = try await SecretInput.line("Pairing string (not shown): ", command: "patchbay join -")
        let argument = try PairingArgument(text)
        let folder = prints ? nil : try CredentialStore(environment: ProcessInfo.processInfo.environment)
        try folder?.prepare()
        let door = try options.door
        let client = options.namesBroker ? door : argument.broker.map { PatchbayClient(address: $0) } ?? door
        let issued = try await redeem(argument.invite, client)
        let output = options.output
        guard let folder else { return try output.line(issued.token) }
        let entry = CredentialStore.Entry(broker: client.address.description, grant: issued.grant, token: issued.token)
        do {
            let file = try folder.keep(entry)
            try output.line("Joined: \(AccessTables.line(issued.grant)).")
            try output.line("The grant is in \(SanitizedText(file, limit: .max)), for you alone.")
            try output.line("Commands use it with --broker \(entry.broker): patchbay list --broker \(entry.broker)")
            try output.line("Another program shows its token with each request, as Authorization: Bearer.")
        } catch let complaint as CLIError {
            throw CLIError(
                status: complaint.status,
                message: "\(complaint.message); the invite is spent, and its grant \(issued.grant.id) of no use",
                remedy: "patchbay revoke \(issued.grant.id), then a new patchbay pair"
            )
        }
    }

    private func redeem(_ invite: Secret, _ client: PatchbayClient) async throws -> IssuedGrant {
        var source = SystemRandomNumberGenerator()
        let key = Base62.random(count: 43, from: &source)
        let spec = RedemptionSpec(token: invite.reveal(), client: key, name: SanitizedText(name ?? Self.ownName))
        for _ in 1..<Self.attempts {
            do { return try await client.redeem(spec) } catch ClientError.connectionLost {
                // No event tells that a broker which restarts listens again.
                try await ContinuousClock().sleep(for: .seconds(1))
            } catch ClientError.timedOut {
                // It has waited long enough.
            }
        }
        return try await client.redeem(spec)
    }

    private static var ownName: String {
        var host = [CChar](repeating: 0, count: 256)
        gethostname(&host, host.count - 1)
        let user = ProcessInfo.processInfo.environment["USER"] ?? "\(geteuid())"
        return "\(user)@\(String(decoding: host.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self))"
    }
}

/// What `patchbay join` reads: a pairing string of this machine, or an invite alone.
struct PairingArgument {
    /// Where to spend the invite; nil for the broker at the usual socket.
    let broker: BrokerAddress?
    let invite: Secret

    private static let lengthLimit = 256

    /// - Throws: `CLIError`, which does not repeat what was given.
    init(_ text: String) throws(CLIError) {
        guard text.utf8.prefix(Self.lengthLimit + 1).count <= Self.lengthLimit else {
            throw Self.refusal("it has more than \(Self.lengthLimit) bytes")
        }
        if text.hasPrefix("pbi_") {
            self.init(broker: nil, invite: try Self.invite(text))
            return
        }
        guard text.hasPrefix("PATCHBAY:") else {
            throw Self.refusal("it begins neither with PATCHBAY: nor with pbi_")
        }
        // From the end, as an IPv6 address has colons of its own.
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        guard parts.count >= 6, parts[1] == "1" else {
            throw Self.refusal("its version is not 1; use the same version of Patchbay on both sides")
        }
        let host = parts[2..<(parts.count - 3)].joined(separator: ":")
        guard let port = UInt16(parts[parts.count - 3]), port > 0 else {
            throw Self.refusal("its address is not a host and a port")
        }
        guard host == "127.0.0.1" || host == "[::1]", parts[parts.count - 2].isEmpty else {
            throw CLIError(
                status: .notPermitted,
                message: "that pairing string is for a broker on another machine, \(SanitizedText(host)), "
                    + "and joining over the network is not in this version; the invite was not sent",
                remedy: "patchbay join - on that machine itself"
            )
        }
        let invite = try Self.invite(String(parts[parts.count - 1]))
        self.init(broker: .loopback(host: host.filter { $0 != "[" && $0 != "]" }, port: port), invite: invite)
    }

    private init(broker: BrokerAddress?, invite: Secret) {
        self.broker = broker
        self.invite = invite
    }

    /// A mistyped one is told here: at the broker it would count as a guess.
    private static func invite(_ text: String) throws(CLIError) -> Secret {
        guard TokenFormat.parts(of: text)?.kind == .invite else {
            throw refusal("its invite is mistyped or cut off; copy it whole")
        }
        return Secret(text)
    }

    private static func refusal(_ why: String) -> CLIError {
        .usage("that is no pairing string: \(why)", try: "patchbay pair on the broker's side shows a new one")
    }
}
