import Model

/// An MCP client whose configuration file Patchbay can change.
enum MCPClientKind: String, CaseIterable {
    case claude, cursor, vscode, codex

    /// The name of the product.
    var product: String {
        switch self {
        case .claude: "Claude Code"
        case .cursor: "Cursor"
        case .vscode: "VS Code"
        case .codex: "Codex"
        }
    }

    /// Returns the client whose product has a similar name: `claude` for `claude-code`, `vscode` for `code`.
    init?(product text: String) {
        func letters(_ text: String) -> String { text.lowercased().filter(\.isLetter) }
        let wanted = letters(text)
        var found = Self.allCases.filter { client in
            wanted == letters(client.product) || wanted.hasPrefix(client.rawValue)
                || wanted.count > 3 && client.rawValue.hasSuffix(wanted)
        }
        if found.isEmpty { found = Self.allCases.filter { SimilarNameFinder.distance(wanted, $0.rawValue) == 1 } }
        guard !wanted.isEmpty, let only = found.first, found.count == 1 else { return nil }
        self = only
    }

    /// The path of the object with the servers.
    var serversPath: [String] {
        switch self {
        case .claude, .cursor: ["mcpServers"]
        case .vscode: ["servers"]
        case .codex: ["mcp_servers"]
        }
    }

    var isTOML: Bool { self == .codex }

    /// The file of a project, below the folder of the project.
    var projectFile: String {
        switch self {
        case .claude: ".mcp.json"
        case .cursor: ".cursor/mcp.json"
        case .vscode: ".vscode/mcp.json"
        case .codex: ".codex/config.toml"
        }
    }

    /// The file of a user. Clients read other folders if these variables are set.
    func userFile(home: String, environment: [String: String]) -> String {
        func folder(_ variable: String, or standard: String) -> String {
            environment[variable].flatMap { $0.hasPrefix("/") ? $0 : nil } ?? standard
        }
        return switch self {
        case .claude: "\(folder("CLAUDE_CONFIG_DIR", or: home))/.claude.json"
        case .cursor: "\(home)/.cursor/mcp.json"
        case .vscode: "\(folder("XDG_CONFIG_HOME", or: "\(home)/.config"))/Code/User/mcp.json"
        case .codex: "\(folder("CODEX_HOME", or: "\(home)/.codex"))/config.toml"
        }
    }

    /// The next step of the user after a change.
    func nextStep(isProject: Bool) -> String {
        switch (self, isProject) {
        case (.claude, true): "Claude Code asks each user once to approve the servers of a project."
        case (.claude, false): "Start a new session of Claude Code; /mcp shows the server."
        case (.cursor, _): "Cursor shows the server in its settings, under MCP; turn it on there if it is off."
        case (.vscode, _): "In VS Code, `MCP: List Servers` shows and starts the server."
        case (.codex, true): "Codex reads this file only in a project that its user trusts."
        case (.codex, false): "Start a new session of Codex; /mcp shows the server."
        }
    }
}
