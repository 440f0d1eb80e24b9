import ArgumentParser
import Client
import Glibc

struct MCPCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "mcp",
        abstract: "Run an MCP server on standard input and output.",
        discussion: """
            MCP clients start this command; the configuration needs no token and no port:

              {"mcpServers": {"patchbay": {"command": "patchbay", "args": ["mcp"]}}}

            Without options, serves the six tools of the broker for all apps. Starts also without a broker and without \
            the app: the first call then reports what is missing. Reconnects when the broker restarts. Without owner \
            rights, run `patchbay join` first and specify --broker.

              patchbay mcp
              patchbay mcp --app com.example.shop
              patchbay mcp --endpoint shop-test-iphone
              patchbay mcp --broker 127.0.0.1:7282
              patchbay mcp install claude --project
            """,
        subcommands: [MCPInstallCommand.self, MCPUninstallCommand.self, MCPCheckCommand.self]
    )

    /// The text for a person who types the command.
    static let terminalNote = """
        patchbay mcp: waits for the messages of an MCP client on standard input; Ctrl-D ends it.
        `patchbay mcp install CLIENT` adds this server to claude, cursor, vscode or codex.
        """

    @OptionGroup var subject: MCPSubjectOptions
    @OptionGroup var options: GlobalOptions

    func run() async throws {
        let (socket, broker) = (options.socket, options.broker)
        // The first call reports a missing grant. A command line that can never work fails at once.
        do { _ = try options.client } catch  where error.status == .usage { throw error } catch {}
        if isatty(STDIN_FILENO) == 1 { try Console.errors().line(Self.terminalNote) }
        let bridge = MCPStdioBridge(
            resolver: TargetResolver(subject.subject) { () throws(CLIError) in
                try GlobalOptions.client(socket: socket, broker: broker)
            },
            output: LineWriter(STDOUT_FILENO),
            log: { text in try? Console.errors().line("patchbay mcp: \(Console.plain(text))") }
        )
        try await bridge.run(LineInput(STDIN_FILENO))
    }
}
