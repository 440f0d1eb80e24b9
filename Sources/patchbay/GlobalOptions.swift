import ArgumentParser
import Client
import FoundationEssentials
import Glibc
import Model

/// The options of a command whose `--socket` is not the broker's.
struct BrokerOptions: ParsableArguments {
    @Option(help: GlobalOptions.brokerHelp)
    var broker: String?
    @Option(help: ArgumentHelp("Use colors: auto, always or never.", valueName: "when"))
    var color = ColorChoice.auto

    /// A client with the credentials that the options select.
    ///
    /// - Throws: `CLIError` if a grant is required and none is stored.
    var client: PatchbayClient {
        get throws(CLIError) { try GlobalOptions.client(socket: nil, broker: broker) }
    }

    var output: Console { Console.standard(color) }
}

/// The options of every command.
struct GlobalOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Connect to the broker at this Unix socket.",
            discussion: "Default: $PATCHBAY_SOCKET, then the system's broker, then your own.",
            valueName: "path"
        )
    )
    var socket: String?

    @Option(help: Self.brokerHelp)
    var broker: String?

    static var brokerHelp: ArgumentHelp {
        ArgumentHelp(
            "Connect to the broker of another machine, or to this address with a stored grant.",
            discussion: """
                ssh://user@host needs no grant. A name of `patchbay brokers`, 127.0.0.1:7282 or a socket path uses the \
                grant that `patchbay join` stored. Default: $PATCHBAY_BROKER.
                """,
            valueName: "broker"
        )
    }

    @Option(help: ArgumentHelp("Use colors: auto, always or never.", valueName: "when"))
    var color = ColorChoice.auto

    /// A client with the credentials that the options select: none on the Unix socket, else a stored grant.
    ///
    /// - Throws: `CLIError` if a grant is required and none is stored.
    var client: PatchbayClient {
        get throws(CLIError) { try Self.client(socket: socket, broker: broker) }
    }

    /// A client without a grant, for redeeming an invite.
    var unauthenticatedClient: PatchbayClient {
        get throws(CLIError) {
            switch try Self.target(socket: socket, broker: broker) {
            case .direct(let address), .granted(let address): return PatchbayClient(address: address)
            case .joined(let broker, _):
                throw .usage(
                    "\(broker.name) is a broker on another machine, and the invite was not sent",
                    try: "patchbay join -, with the whole pairing string and without --broker"
                )
            }
        }
    }

    /// True if the command line has `--socket` or `--broker`.
    var namesBroker: Bool { socket != nil || broker != nil }

    /// True if requests carry a grant's token.
    var usesGrant: Bool {
        get throws(CLIError) {
            if case .direct = try Self.target(socket: socket, broker: broker) { false } else { true }
        }
    }

    /// Returns the environment of a program that reaches the same broker without these options.
    func environment(from environment: [String: String]) -> [String: String] {
        var environment = environment
        if let broker { environment[Self.brokerVariable] = broker }
        if socket != nil {
            environment[Self.brokerVariable] = nil
            environment[BrokerSocketPath.variable] = Self.path(of: socket)
        }
        return environment
    }

    var output: Console { Console.standard(color) }

    /// The hints of the command.
    var hint: BrokerHint { BrokerHint(broker: broker) }

    static func client(socket: String?, broker: String?) throws(CLIError) -> PatchbayClient {
        switch try target(socket: socket, broker: broker) {
        case .direct(let address): return PatchbayClient(address: address)
        case .joined(let broker, let store): return try store.client(of: broker)
        case .granted(let address):
            let store = try CredentialStore(environment: ProcessInfo.processInfo.environment)
            _ = try store.credential(for: address)
            // Read for every request: `patchbay mcp` runs for days and must see the grant of a later `join`.
            return PatchbayClient(address: address) {
                (try? store.credential(for: address)).map { AccessToken($0.token) }
            }
        }
    }

    /// The broker of a command, and how the command identifies itself there.
    private enum Target {
        /// By the user of the process, here or on the other machine.
        case direct(BrokerAddress)
        /// By a grant for this machine.
        case granted(BrokerAddress)
        /// By the grant of a broker on another machine.
        case joined(JoinedBroker, JoinedBrokerStore)
    }

    /// Resolves the broker; the command line takes precedence over the environment.
    private static func target(socket: String?, broker: String?) throws(CLIError) -> Target {
        if socket != nil, broker != nil {
            throw .usage("--socket and --broker exclude each other", try: "remove one of the two options")
        }
        let variable = ProcessInfo.processInfo.environment[brokerVariable].flatMap { $0.isEmpty ? nil : $0 }
        guard let text = broker ?? (socket == nil ? variable : nil) else {
            return .direct(.unix(path: path(of: socket)))
        }
        if JoinedBroker.isName(text) {
            let store = try JoinedBrokerStore(environment: ProcessInfo.processInfo.environment)
            return .joined(try store.broker(named: text), store)
        }
        let address = try BrokerAddressArgument.address(text)
        // The user of ssh has the rights of that user on the other machine.
        if case .ssh = address { return .direct(address) }
        return .granted(address)
    }

    private static let brokerVariable = "PATCHBAY_BROKER"

    /// Returns the path of the broker's socket. A relative `--socket` is resolved against the working directory.
    static func path(of socket: String?) -> String {
        let explicit = socket.map { $0.hasPrefix("/") ? $0 : FileManager.default.currentDirectoryPath + "/" + $0 }
        return BrokerSocketPath.find(
            explicit: explicit,
            environment: ProcessInfo.processInfo.environment,
            userID: geteuid(),
            exists: { access($0, F_OK) == 0 }
        )
    }
}

/// The value of `--broker`: `ssh://user@host`, `127.0.0.1:7282`, also as a URL, or the path of a socket.
enum BrokerAddressArgument {
    /// - Throws: `CLIError` for an invalid address, or an address of another machine.
    static func address(_ text: String) throws(CLIError) -> BrokerAddress {
        if text.hasPrefix("/") { return .unix(path: text) }
        if text.hasPrefix(SSHDestination.scheme) {
            do throws(ClientError) { return .ssh(try SSHDestination(text)) } catch {
                throw .usage(error.description, try: error.hint ?? "--broker ssh://user@host")
            }
        }
        if let near = suggestion(for: text) {
            throw .usage("\"\(SanitizedText(text))\" is not a broker address", try: "--broker \(near)")
        }
        var address = text[...]
        if address.hasPrefix("http://") { address = address.dropFirst("http://".count) }
        if address.hasSuffix("/") { address = address.dropLast() }
        guard let colon = address.lastIndex(of: ":"),
            let port = UInt16(address[address.index(after: colon)...]), port > 0
        else {
            throw .usage("\"\(SanitizedText(text))\" is not a broker address", try: "--broker 127.0.0.1:7282")
        }
        switch address[..<colon] {
        case "127.0.0.1", "localhost": return .loopback(host: "127.0.0.1", port: port)
        case "[::1]": return .loopback(host: "::1", port: port)
        case let host:
            throw CLIError.notPermitted(
                "\(SanitizedText(host)) is another machine, and no token was sent; join it first, and give "
                    + "--broker its name",
                try: "patchbay brokers lists the names; --broker ssh://\(SanitizedText(host)) needs none"
            )
        }
    }

    /// Returns the broker that was probably meant by `LAB`, `SSH://lab` or `anna@lab`; nil for any other text.
    private static func suggestion(for text: String) -> String? {
        let name = text.lowercased()
        if name != text, JoinedBroker.isName(name) { return name }
        let hasScheme = name.hasPrefix(SSHDestination.scheme)
        guard hasScheme || text.contains("@") else { return nil }
        let address = SSHDestination.scheme + (hasScheme ? text.dropFirst(SSHDestination.scheme.count) : text[...])
        return (try? SSHDestination(address)) == nil ? nil : address
    }
}
