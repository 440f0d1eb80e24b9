import ArgumentParser
import Client
import FoundationEssentials
import Glibc
import Model

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

    @Option(
        help: ArgumentHelp(
            "Connect to the broker at this address with the grant that `patchbay join` stored.",
            discussion: "Host and port, such as 127.0.0.1:7282, or a socket path. Default: $PATCHBAY_BROKER.",
            valueName: "address"
        )
    )
    var broker: String?

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
        get throws(CLIError) { PatchbayClient(address: try Self.address(socket: socket, broker: broker).broker) }
    }

    /// True if the command line has `--socket` or `--broker`.
    var namesBroker: Bool { socket != nil || broker != nil }

    /// True if requests carry a grant's token.
    var usesGrant: Bool {
        get throws(CLIError) { try Self.address(socket: socket, broker: broker).wantsGrant }
    }

    var output: Console { Console.standard(color) }

    static func client(socket: String?, broker: String?) throws(CLIError) -> PatchbayClient {
        let (address, wantsGrant) = try address(socket: socket, broker: broker)
        guard wantsGrant else { return PatchbayClient(address: address) }
        let store = try CredentialStore(environment: ProcessInfo.processInfo.environment)
        _ = try store.credential(for: address)
        // The grant is read for every request: `patchbay mcp` runs for days and must see the grant of a later `join`.
        return PatchbayClient(address: address) {
            (try? store.credential(for: address)).map { AccessToken($0.token) }
        }
    }

    /// Resolves the broker's address; the command line takes precedence over the environment.
    private static func address(
        socket: String?,
        broker: String?
    ) throws(CLIError) -> (broker: BrokerAddress, wantsGrant: Bool) {
        if socket != nil, broker != nil {
            throw .usage("--socket and --broker exclude each other", try: "remove one of the two options")
        }
        let variable = ProcessInfo.processInfo.environment[brokerVariable].flatMap { $0.isEmpty ? nil : $0 }
        guard let text = broker ?? (socket == nil ? variable : nil) else {
            return (.unix(path: path(of: socket)), false)
        }
        return (try BrokerAddressArgument.address(text), true)
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

/// The `--json` option of commands with output.
struct JSONOption: ParsableArguments {
    @Flag(help: "Print JSON: one document, or one document per line for streams. The format is stable.")
    var json = false
}

/// The options of lists: `--json` and `--quiet`.
struct ListOptions: ParsableArguments {
    @Flag(help: "Print JSON: one document, or one document per line for streams. The format is stable.")
    var json = false
    @Flag(name: [.short, .long], help: "Print only the IDs, one per line.")
    var quiet = false

    func validate() throws {
        if json, quiet { throw ValidationError("--json and --quiet exclude each other.") }
    }

    /// Prints a list in the format of the options.
    ///
    /// - Parameters:
    ///   - document: The output of `--json`.
    ///   - ids: The output of `--quiet`.
    ///   - table: The output without an option.
    ///   - emptyMessage: The output instead of a table without rows.
    ///   - footer: The line after a table with rows.
    ///   - output: Standard output.
    /// - Throws: `BrokenPipe`, `CLIError`.
    func show(
        _ document: some Encodable,
        ids: [String],
        table: Table,
        ifEmpty emptyMessage: String,
        footer: String? = nil,
        on output: Console
    ) throws {
        if json { return try output.document(document) }
        if quiet { return try output.ids(ids) }
        if table.rows.isEmpty { return try output.line(emptyMessage) }
        try output.table(table)
        if let footer { try output.line(footer) }
    }
}

/// The value of `--broker`: `127.0.0.1:7282`, also as a URL, or the path of a socket.
enum BrokerAddressArgument {
    /// - Throws: `CLIError` for an invalid address, or an address of another machine.
    static func address(_ text: String) throws(CLIError) -> BrokerAddress {
        if text.hasPrefix("/") { return .unix(path: text) }
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
            throw CLIError(
                status: .notPermitted,
                message:
                    "\(SanitizedText(host)) is another machine; this version does not connect to brokers over the "
                    + "network, and no token was sent",
                hint: "run the command on that machine with --broker 127.0.0.1:\(port)"
            )
        }
    }
}
