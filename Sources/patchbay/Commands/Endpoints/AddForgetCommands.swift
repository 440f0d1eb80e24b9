import ArgumentParser
import Client
import Model

struct AddCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "add",
        abstract: "List an endpoint that nothing announces, by its address.",
        discussion: """
            The address is numeric or localhost. It is remembered until `patchbay forget`.

              patchbay add Simulator 127.0.0.1:9876 --kind appreveal
              patchbay add Lab '[fd00::7]:8080'
            """
    )

    @Argument(help: ArgumentHelp("What people will see.", valueName: "name"))
    var name: String
    @Argument(help: ArgumentHelp("Where it listens: ADDRESS:PORT.", valueName: "address:port"))
    var address: String
    @Option(help: ArgumentHelp("What it speaks: appreveal, app-debug, mcp, dart-vm, tcp…", valueName: "kind"))
    var kind = "tcp"
    @Option(help: ArgumentHelp("The app's bundle identifier.", valueName: "app"))
    var app: String?
    @OptionGroup var format: JSONOption
    @OptionGroup var options: GlobalOptions

    func run() async throws {
        let endpoint = try await options.client.add(endpoint())
        if format.json { return try options.output.document(endpoint) }
        try options.output.line("Added \(endpoint.id).")
    }

    func endpoint() throws(CLIError) -> StaticEndpoint {
        let isName = !name.isEmpty && SanitizedText(name).text == name
        let example = "patchbay add \"\(isName ? name : "Simulator")\" 127.0.0.1:9876"
        guard case .tcp(let host?, let port)? = ListenAddress(address), !address.hasPrefix("tcp:") else {
            throw .usage("\"\(SanitizedText(address))\" is not ADDRESS:PORT", try: example)
        }
        let endpoint = StaticEndpoint(name: name, kind: EndpointKind(kind), address: host, port: port, app: app)
        if let problem = endpoint.problem { throw .usage(problem, try: example) }
        return endpoint
    }
}

struct ForgetCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "forget",
        abstract: "Strike an endpoint off the list, and its id with it.",
        discussion: """
            For endpoints that are offline for good, and for static ones. Something that still announces itself comes \
            back as a new endpoint.

              patchbay forget shop-old-iphone
            """
    )

    @Argument(help: ArgumentHelp("Which endpoint.", valueName: "endpoint"))
    var selector: String
    @OptionGroup var options: GlobalOptions

    func run() async throws {
        let list = try await options.client.endpoints()
        let endpoint = try EndpointSelector(text: selector, command: "patchbay forget").choose(among: list.endpoints)
        try await options.client.forget(endpoint.id)
        try options.output.line("Forgot \(endpoint.id).")
        let left = try await options.client.tunnels().tunnels.filter { $0.spec.target == .endpoint(endpoint.id) }
        guard !left.isEmpty else { return }
        let ids = left.map(\.id).joined(separator: " ")
        try options.output.line(
            "Still leading to it: \(ids). `patchbay tunnels rm \(ids)` removes \(left.count == 1 ? "it" : "them")."
        )
    }
}
