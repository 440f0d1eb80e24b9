import ArgumentParser
import Client
import Glibc
import Model

struct MCPCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "mcp",
        abstract: "Speak MCP over standard input and output, for agents' clients.",
        discussion: """
            Clients start it themselves; their configuration needs no token and no port:

              {"mcpServers": {"patchbay": {"command": "patchbay", "args": ["mcp"]}}}

            Without an option it is the broker with six tools for every app. A broker that restarts is waited for. Who \
            is no owner of the broker joins it first, and names it with --broker.

              patchbay mcp
              patchbay mcp --endpoint shop-test-iphone
              patchbay mcp --broker 127.0.0.1:7282
            """
    )

    @Option(help: ArgumentHelp("An app's own tools, by the endpoint's id.", valueName: "id"))
    var endpoint: String?
    @Flag(help: "All apps' tools together, where the broker's configuration has `[mcp] all = true`.")
    var all = false
    @OptionGroup var options: GlobalOptions

    func validate() throws {
        if all, endpoint != nil { throw ValidationError("--endpoint and --all are two different doors; give one") }
    }

    func run() async throws {
        let shim = MCPStdioBridge(
            door: try door(),
            client: try options.client,
            output: LineWriter(STDOUT_FILENO),
            note: { text in try? Console.errors().line("patchbay mcp: \(Console.plain(text))") }
        )
        try await shim.run(LineReader(STDIN_FILENO))
    }

    /// - Throws: `CLIError`.
    func door() throws(CLIError) -> MCPTarget {
        guard let endpoint else { return all ? .all : .broker }
        guard let id = EndpointID(endpoint) else {
            throw .usage("\"\(SanitizedText(endpoint))\" is no endpoint's id", try: "patchbay list")
        }
        return .endpoint(id)
    }
}
