import ArgumentParser
import Client
import Glibc
import Model

struct MCPCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "mcp",
        abstract: "Run an MCP server on standard input and output.",
        discussion: """
            MCP clients start this command; the configuration needs no token and no port:

              {"mcpServers": {"patchbay": {"command": "patchbay", "args": ["mcp"]}}}

            Without options, serves the six tools of the broker for all apps. Reconnects when the broker restarts. \
            Without owner rights, run `patchbay join` first and specify --broker.

              patchbay mcp
              patchbay mcp --endpoint shop-test-iphone
              patchbay mcp --broker 127.0.0.1:7282
            """
    )

    @Option(help: ArgumentHelp("Serve the tools of this endpoint.", valueName: "id"), completion: .objects(.endpoints))
    var endpoint: String?
    @Flag(help: "Serve the tools of all apps; requires `[mcp] all = true` in the broker's configuration.")
    var all = false
    @OptionGroup var options: GlobalOptions

    func validate() throws {
        if all, endpoint != nil { throw ValidationError("--endpoint and --all exclude each other.") }
    }

    func run() async throws {
        let bridge = MCPStdioBridge(
            target: try target(),
            client: try options.client,
            output: LineWriter(STDOUT_FILENO),
            log: { text in try? Console.errors().line("patchbay mcp: \(Console.plain(text))") }
        )
        try await bridge.run(LineReader(STDIN_FILENO))
    }

    /// Returns the MCP server that the options select.
    ///
    /// - Throws: `CLIError` for an invalid endpoint ID.
    func target() throws(CLIError) -> MCPTarget {
        guard let endpoint else { return all ? .all : .broker }
        guard let id = EndpointID(endpoint) else {
            throw .usage("\"\(SanitizedText(endpoint))\" is not an endpoint ID", try: "patchbay list")
        }
        return .endpoint(id)
    }
}
