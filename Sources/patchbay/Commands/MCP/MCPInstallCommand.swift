import ArgumentParser
import FoundationEssentials
import Glibc
import Model

extension MCPClientKind: ExpressibleByArgument {}

/// The options that select a configuration file and the server in it.
struct ConfigurationTargetOptions: ParsableArguments {
    @Argument(help: ArgumentHelp("The MCP client.", valueName: "claude|cursor|vscode|codex"))
    var client: MCPClientKind
    @Flag(help: "Use the file of this project, which a team can share. Default: your own file.")
    var project = false
    @Option(help: ArgumentHelp("The name of the server in the file.", valueName: "name"))
    var name = "patchbay"
    @Flag(name: .customLong("dry-run"), help: "Show the change and write nothing.")
    var isDryRun = false

    func validate() throws {
        let isName = name.utf8.allSatisfy { $0.isLetterOrDigit || "_-".utf8.contains($0) }
        // Clients put the name in front of each tool name, and a TOML key needs no quotes.
        guard isName, (1...64).contains(name.utf8.count) else {
            throw ValidationError("--name must have 1 to 64 letters, digits, hyphens and underscores.")
        }
    }

    /// - Throws: `CLIError`.
    func target() throws(CLIError) -> ConfigurationTarget {
        try ConfigurationTarget(
            client,
            isProject: project,
            name: name,
            folder: FileManager.default.currentDirectoryPath,
            environment: ProcessInfo.processInfo.environment
        )
    }

    /// The command that has the same client and server.
    func command(_ verb: String) -> String {
        "patchbay mcp \(verb) \(client.rawValue)" + (project ? " --project" : "")
            + (name == "patchbay" ? "" : " --name \(name.shellQuoted)")
    }
}

struct MCPInstallCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "install",
        abstract: "Add the MCP server to the configuration of a client.",
        discussion: """
            Shows the lines, and writes them to the file of Claude Code (claude), Cursor (cursor), VS Code (vscode) or \
            Codex (codex). Everything else in the file stays as it is, with its comments. If that is not possible, \
            prints the lines and fails. Run it again to change the options of the server.

              patchbay mcp install claude
              patchbay mcp install claude --project --app com.example.shop
              patchbay mcp install vscode --project --dry-run
              patchbay mcp uninstall claude --project
            """
    )

    @OptionGroup var place: ConfigurationTargetOptions
    @OptionGroup var subject: MCPSubjectOptions
    @OptionGroup var options: GlobalOptions

    func run() throws {
        let (target, output) = (try place.target(), options.output)
        let broker = try broker
        let entry = ServerEntry(command: command, arguments: ["mcp"] + subject.subject.arguments + broker.arguments)
        if let variable = broker.omittedVariable {
            try output.line("Note: the entry does not have the broker of $\(variable); each user must set it.")
        }
        if place.isDryRun { return try install(entry, in: target) }
        try ConfigurationFile(path: target.file).locked { try install(entry, in: target) }
    }

    private func install(_ entry: ServerEntry, in target: ConfigurationTarget) throws {
        let (file, output) = (ConfigurationFile(path: target.file), options.output)
        let old = try file.content()
        let new = try ConfigurationEdit(target: target).adding(entry, to: old ?? [])
        if new == old { return try output.line("\(file.name) has this server already; nothing was changed.") }
        try output.line("\(file.name), below \(target.client.serversPath[0]):")
        for line in entry.snippet(for: target) { try output.line("  \(line)") }
        guard !place.isDryRun else { return try output.line("Nothing was written, because of --dry-run.") }
        try file.replace(old, with: new, mode: place.project ? 0o644 : 0o600)
        try output.line("Written. \(target.client.nextStep(isProject: place.project))")
        let words = ["patchbay", "mcp", "check"] + entry.arguments.dropFirst()
        try output.line("Check it with `\(words.map(\.shellQuoted).joined(separator: " "))`.")
        try output.line("Remove it with `\(place.command("uninstall"))`.")
    }

    private var broker: BrokerArguments {
        get throws(CLIError) {
            try BrokerArguments(
                socket: options.socket,
                broker: options.broker,
                isProject: place.project,
                environment: ProcessInfo.processInfo.environment
            )
        }
    }

    /// The command for the file. The name alone works on every machine of a team. In a user's own file the path is
    /// needed unless the program is in a folder that also programs of the desktop search.
    private var command: String {
        let path = (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? "patchbay"
        let isInSearchPath = ["/usr/bin/patchbay", "/usr/local/bin/patchbay"].contains(path)
        return place.project || isInSearchPath ? "patchbay" : path
    }
}

struct MCPUninstallCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "uninstall",
        abstract: "Remove the MCP server from the configuration of a client.",
        discussion: """
              patchbay mcp uninstall claude --project
              patchbay mcp uninstall codex --name shop --dry-run
            """
    )

    @OptionGroup var place: ConfigurationTargetOptions
    @OptionGroup var options: GlobalOptions

    func run() throws {
        let target = try place.target()
        let file = ConfigurationFile(path: target.file)
        // The lock creates the folder, which a removal must not do.
        if try place.isDryRun || file.content() == nil { return try uninstall(target) }
        try file.locked { try uninstall(target) }
    }

    private func uninstall(_ target: ConfigurationTarget) throws {
        let (file, output) = (ConfigurationFile(path: target.file), options.output)
        let old = try file.content()
        guard let old, let new = try ConfigurationEdit(target: target).removing(from: old) else {
            let client = target.client.rawValue
            throw CLIError.notFound(
                "\(target.file) has no server \"\(target.name)\"",
                try: place.project
                    ? "patchbay mcp uninstall \(client), for your own file"
                    : "patchbay mcp uninstall \(client) --project, in the folder of the project"
            )
        }
        guard !place.isDryRun else {
            return try output.line("\(target.path.joined(separator: ".")) would be removed from \(file.name).")
        }
        try file.replace(old, with: new, mode: 0o600)
        try output.line("Removed \(target.path.joined(separator: ".")) from \(file.name).")
    }
}
