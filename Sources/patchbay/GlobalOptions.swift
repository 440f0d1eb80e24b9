import ArgumentParser
import Client
import FoundationEssentials
import Glibc
import Model

/// What every verb takes.
struct GlobalOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "The broker's socket.",
            discussion: "Default: $PATCHBAY_SOCKET, else the machine's broker, else your own.",
            valueName: "path"
        )
    )
    var socket: String?

    @Option(
        help: ArgumentHelp(
            "A broker by its address, with the grant that `patchbay join` keeps for it.",
            discussion: "127.0.0.1:7282, or a socket's path. Default: $PATCHBAY_BROKER.",
            valueName: "address"
        )
    )
    var broker: String?

    @Option(help: ArgumentHelp("Colours: auto, always or never.", valueName: "when"))
    var color = ColorChoice.auto

    /// The broker, as the one that this process is to it.
    ///
    /// - Throws: `CLIError` where a grant is wanted and none is kept.
    var client: PatchbayClient {
        get throws(CLIError) { try Self.client(socket: socket, broker: broker) }
    }

    /// The broker alone, for who has no grant yet.
    var door: PatchbayClient {
        get throws(CLIError) { PatchbayClient(address: try Self.address(socket: socket, broker: broker).broker) }
    }

    /// Whether the command line says which broker is meant.
    var namesBroker: Bool { socket != nil || broker != nil }

    /// Whether calls are made under a grant.
    var usesGrant: Bool {
        get throws(CLIError) { try Self.address(socket: socket, broker: broker).wantsGrant }
    }

    var output: Console { Console.standard(color) }

    static func client(socket: String?, broker: String?) throws(CLIError) -> PatchbayClient {
        let (address, wantsGrant) = try address(socket: socket, broker: broker)
        guard wantsGrant else { return PatchbayClient(address: address) }
        let folder = try CredentialStore(environment: ProcessInfo.processInfo.environment)
        _ = try folder.entry(for: address)
        // Whoever joins anew does so for those, too, that run already: an agent's client keeps `patchbay mcp` for days.
        return PatchbayClient(address: address) {
            (try? folder.entry(for: address)).map { AccessToken($0.token) }
        }
    }

    /// What the command line says counts before the environment.
    private static func address(
        socket: String?,
        broker: String?
    ) throws(CLIError) -> (broker: BrokerAddress, wantsGrant: Bool) {
        if socket != nil, broker != nil {
            throw .usage("--socket and --broker name two brokers", try: "leave one of them out")
        }
        let told = ProcessInfo.processInfo.environment[brokerVariable].flatMap { $0.isEmpty ? nil : $0 }
        guard let text = broker ?? (socket == nil ? told : nil) else { return (.unix(path: path(of: socket)), false) }
        return (try BrokerAddressArgument.address(text), true)
    }

    private static let brokerVariable = "PATCHBAY_BROKER"

    /// Where the broker is, given what `--socket` says; a relative path begins where the shell stands.
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

/// For the verbs that show something.
struct JSONOption: ParsableArguments {
    @Flag(help: "Print JSON instead of text: one document, or one per line where it goes on. This form is stable.")
    var json = false
}

/// What `--broker` names: `127.0.0.1:7282`, also as a URL, or the path of a socket.
enum BrokerAddressArgument {
    /// - Throws: `CLIError`.
    static func address(_ text: String) throws(CLIError) -> BrokerAddress {
        if text.hasPrefix("/") { return .unix(path: text) }
        var place = text[...]
        if place.hasPrefix("http://") { place = place.dropFirst("http://".count) }
        if place.hasSuffix("/") { place = place.dropLast() }
        guard let colon = place.lastIndex(of: ":"), let port = UInt16(place[place.index(after: colon)...]), port > 0
        else {
            throw .usage("\"\(SanitizedText(text))\" is no broker's address", try: "--broker 127.0.0.1:7282")
        }
        switch place[..<colon] {
        case "127.0.0.1", "localhost": return .loopback(host: "127.0.0.1", port: port)
        case "[::1]": return .loopback(host: "::1", port: port)
        case let host:
            throw CLIError(
                status: .notPermitted,
                message:
                    "\(SanitizedText(host)) is another machine, and calling brokers over the network is not in this "
                    + "version; no token was sent",
                remedy: "--broker 127.0.0.1:\(port) on that machine itself"
            )
        }
    }
}
