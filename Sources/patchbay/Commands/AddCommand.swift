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
