import ArgumentParser
import Client
import Model

struct AddCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "add",
        abstract: "Add a static endpoint by address.",
        discussion: """
            The address is numeric or localhost. A URL with a path is an MCP server. The endpoint is stored until \
            `patchbay rm`. The broker connects once, and the command shows a failure.

              patchbay add Simulator 127.0.0.1:9876 --kind appreveal
              patchbay add Tools http://127.0.0.1:8000/api/mcp
              patchbay add Chrome 127.0.0.1:9222 --kind web
              patchbay add Lab '[fd00::7]:8080'
            """
    )

    @Argument(help: ArgumentHelp("Set the display name.", valueName: "name"))
    var name: String
    @Argument(help: ArgumentHelp("Set the server's address: ADDRESS:PORT or a URL.", valueName: "address:port"))
    var address: String
    @Option(
        help: ArgumentHelp(
            "Set the protocol: appreveal, mcp, web, tcp… or the name of a profile. (default: tcp; mcp for a URL with a path)",
            valueName: "kind"
        ),
        completion: .objects(.kinds)
    )
    var kind: String?
    @Option(help: ArgumentHelp("Set the app's bundle identifier.", valueName: "app"))
    var app: String?
    @OptionGroup var format: JSONOption
    @OptionGroup var options: GlobalOptions

    func run() async throws {
        let endpoint = try await options.client.add(endpoint())
        if format.json { return try options.output.document(endpoint) }
        try options.output.line("Added \(endpoint.id).")
        if let reason = endpoint.reason { try options.output.line("It is \(endpoint.state.rawValue): \(reason).") }
    }

    /// Builds the endpoint from the arguments.
    ///
    /// - Throws: `CLIError` for an invalid name or address.
    func endpoint() throws(CLIError) -> StaticEndpoint {
        let isName = !name.isEmpty && SanitizedText(name).text == name
        let example = "patchbay add \"\(isName ? name : "Simulator")\" 127.0.0.1:9876"
        let isURL = address.lowercased().hasPrefix("http://")
        let rest = isURL ? address.dropFirst("http://".count) : address[...]
        let authority = isURL ? rest.prefix { $0 != "/" } : rest
        let path = authority.endIndex < rest.endIndex ? String(rest[authority.endIndex...]) : nil
        let place =
            isURL && !authority.hasSuffix("]") && authority.last?.isNumber == true && !authority.contains(":")
            ? "\(authority):80" : String(authority)
        guard case .tcp(let host?, let port)? = ListenAddress(place), !address.hasPrefix("tcp:") else {
            throw .usage(
                "\"\(SanitizedText(address))\" is not ADDRESS:PORT with a port from 1 to 65535, or such a URL with http",
                try: example
            )
        }
        let endpoint = StaticEndpoint(
            name: name,
            kind: EndpointKind(kind ?? (path == nil ? "tcp" : "mcp")),
            address: host,
            port: port,
            app: app,
            path: path
        )
        if let problem = endpoint.validationError { throw .usage(problem.message, try: example) }
        return endpoint
    }
}

struct RemoveCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "rm",
        abstract: "Remove an endpoint and release its ID.",
        discussion: """
            Removes static endpoints and endpoints that are offline. A service that is still announced is listed \
            again as a new endpoint.

              patchbay rm shop-old-iphone
            """
    )

    @Argument(help: ArgumentHelp("Remove this endpoint.", valueName: "endpoint"), completion: .objects(.endpoints))
    var selector: String
    @OptionGroup var options: GlobalOptions

    func run() async throws {
        let named = EndpointSelector(text: selector, command: "patchbay rm", takesUnapproved: true)
        let endpoint = try await named.choose(options.client)
        try await options.client.removeEndpoint(endpoint.id)
        try options.output.line("Removed \(endpoint.id).")
        let left = try await options.client.tunnels.list().filter { $0.spec.target == .endpoint(endpoint.id) }
        guard !left.isEmpty else { return }
        let ids = left.map(\.id).joined(separator: " ")
        try options.output.line(
            "Tunnels with this endpoint as target remain: \(ids). Remove them with `patchbay tunnels rm \(ids)`."
        )
    }
}
