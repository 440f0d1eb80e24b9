import Model
import Testing

@testable import patchbay

@Suite struct ConfigurationEditTests {
    private static let entry = ServerEntry(command: "patchbay", arguments: ["mcp", "--app", "com.example.shop"])

    private static func edit(_ client: MCPClientKind, name: String = "patchbay") throws -> ConfigurationEdit {
        ConfigurationEdit(
            target: try ConfigurationTarget(
                client,
                isProject: false,
                name: name,
                folder: "/",
                environment: ["HOME": "/home/anna"]
            )
        )
    }

    private static func added(_ client: MCPClientKind, to text: String) throws -> String {
        String(decoding: try edit(client).adding(entry, to: Array(text.utf8)), as: UTF8.self)
    }

    private static func removed(_ client: MCPClientKind, from text: String) throws -> String? {
        try edit(client).removing(from: Array(text.utf8)).map { String(decoding: $0, as: UTF8.self) }
    }

    @Test func `a new JSON file has the server alone`() throws {
        let text = """
            {
              "mcpServers": {
                "patchbay": {
                  "type": "stdio",
                  "command": "patchbay",
                  "args": ["mcp", "--app", "com.example.shop"]
                }
              }
            }

            """
        #expect(try Self.added(.claude, to: "") == text)
        #expect(try Self.added(.vscode, to: "") == text.replacing("mcpServers", with: "servers"))
    }

    @Test func `everything else in a JSON file stays, with comments, order, indentation and line ends`() throws {
        let text = """
            // Our servers.
            {
            \t"servers": {
            \t\t/* the old one */
            \t\t"other": {"command": "x", "args": ["a",  "b"]}, // keep

            \t},
            \t"inputs": [1.50, ] // numbers
            }
            """.replacing("\n", with: "\r\n")
        let edited = try Self.added(.vscode, to: text)
        let added =
            "\r\n\t\t\"patchbay\": {\n\t\t\t\"type\": \"stdio\",\n\t\t\t\"command\": \"patchbay\",\n\t\t\t\"args\": "
            + "[\"mcp\", \"--app\", \"com.example.shop\"]\n\t\t},"
        #expect(edited.replacing("\r\n", with: "\n").contains(added.replacing("\r\n", with: "\n")))
        #expect(!edited.replacing("\r\n", with: "").utf8.contains(10))
        #expect(
            try Self.removed(.vscode, from: edited)?.filter { !$0.isWhitespace } == text.filter { !$0.isWhitespace }
        )
    }

    @Test(arguments: [
        "{}", "{\n}", "{\"a\": 1}", "{\"mcpServers\":{}}", "{\"mcpServers\":{\"a\":{\"command\":\"b\"}},\"c\":[]}",
        "{\n    \"a\": {\n        \"b\": 1 // c\n    }\n}\n", "{\n  \"mcpServers\": {\n    // none yet\n  }\n}\n",
        "\u{FEFF}{ \"a\": \"ü\\n\" }", "{\"a\": 1 /* one */ }",
    ]) func `a server is added once to a JSON file, and its removal leaves the rest`(text: String) throws {
        let edited = try Self.added(.cursor, to: text)
        #expect(try JSONTextEditor(Array(edited.utf8)).value(at: ["mcpServers", "patchbay", "command"]) == "patchbay")
        #expect(try Self.added(.cursor, to: edited) == edited)
        let rest = try #require(try Self.removed(.cursor, from: edited))
        #expect(try Self.removed(.cursor, from: rest) == nil)
        let original = try JSONTextEditor(Array(text.utf8))
        let result = try JSONTextEditor(Array(rest.utf8))
        for key in ["a", "c"] { #expect(result.value(at: [key]) == original.value(at: [key])) }
        for comment in ["// c", "// none yet", "/* one */"] where text.contains(comment) {
            #expect(rest.contains(comment))
        }
    }

    @Test func `a server with other options is updated, and its other members stay`() throws {
        let text = """
            {"mcpServers": {"patchbay": {"command": "/opt/patchbay", "args": ["mcp"], "env": {"A": "b"}}}}
            """
        #expect(
            try Self.added(.claude, to: text) == """
                {"mcpServers": {"patchbay": {"command": "patchbay", "args": ["mcp", "--app", "com.example.shop"], "env": {"A": "b"}}}}
                """
        )
    }

    @Test(arguments: [
        "{\"mcpServers\": []}", "[]", "{\"a\": }", "{\"a\": 1} x", "{'a': 1}",
        "{\"mcpServers\": {}, \"mcpServers\": {}}",
        "{\"mcpServers\": {\"patchbay\": {\"url\": \"http://127.0.0.1:7282/mcp\"}}}",
        "{\"mcpServers\": {\"patchbay\": {\"command\": \"patchbay\", \"args\": [\"mcp\", /* no */ \"--all\"]}}}",
    ]) func `a JSON file that cannot be changed without a loss is refused`(text: String) throws {
        let error = #expect(throws: CLIError.self) { try Self.added(.claude, to: text) }
        #expect(error?.status == .configuration)
        #expect(error?.message.contains("/home/anna/.claude.json") == true)
        #expect(error?.hint != nil)
    }

    @Test func `a new TOML table is appended, and everything else stays`() throws {
        let text = """
            # Codex
            model = "o5" # the best
            notes = \"\"\"
            [mcp_servers.fake]
            \"\"\"

            [mcp_servers.other]
            command = 'x'
            args = [
              "a", # why
            ]
            """
        let edited = try Self.added(.codex, to: text)
        let table = """
            [mcp_servers.patchbay]
            command = "patchbay"
            args = ["mcp", "--app", "com.example.shop"]

            """
        #expect(edited == text + "\n\n" + table)
        #expect(try Self.added(.codex, to: edited) == edited)
        #expect(try Self.removed(.codex, from: edited) == text + "\n")
        #expect(try Self.added(.codex, to: "") == table)
    }

    @Test func `a TOML table is updated and removed between others`() throws {
        let text = """
            [mcp_servers.patchbay]
            command = "patchbay"
            args = ["mcp"]
            startup_timeout_sec = 20

            [mcp_servers.patchbay.env]
            A = "b"

            # the other one
            [mcp_servers.other]
            command = "x"

            """
        let edited = try Self.added(.codex, to: text)
        #expect(edited == text.replacing(#"["mcp"]"#, with: #"["mcp","--app","com.example.shop"]"#))
        let rest = try Self.removed(.codex, from: text)
        #expect(rest == "# the other one\n[mcp_servers.other]\ncommand = \"x\"\n")
    }

    @Test(arguments: [
        "mcp_servers = {}", "[mcp_servers]\npatchbay = { command = \"patchbay\", args = [\"mcp\"] }", "a = \"b", "a",
        "[mcp_servers.patchbay]\nurl = \"http://127.0.0.1\"\n", "a = [1, 2", "[a\n",
        "[mcp_servers.patchbay]\ncommand = \"patchbay\"\nargs = [\"mcp\", # no\n \"--all\"]\n",
    ]) func `a TOML file that cannot be changed without a loss is refused`(text: String) throws {
        let error = #expect(throws: CLIError.self) { try Self.added(.codex, to: text) }
        #expect(error?.status == .configuration)
        #expect(error?.hint != nil)
    }

    @Test func `a comment inside of the server is not removed with it`() throws {
        let json = "{\"mcpServers\": {\n\"patchbay\": {\"command\": \"patchbay\", // ours\n\"args\": [\"mcp\"]}}}"
        let error = #expect(throws: CLIError.self) { try Self.removed(.claude, from: json) }
        #expect(error?.message.contains("the comment on line 2") == true)
        let toml = "[mcp_servers.patchbay]\ncommand = \"patchbay\" # ours\nargs = [\"mcp\"]\n"
        #expect(throws: CLIError.self) { try Self.removed(.codex, from: toml) }
    }

    @Test(arguments: [
        (MCPClientKind.claude, "/home/anna/.claude.json"), (.cursor, "/home/anna/.cursor/mcp.json"),
        (.vscode, "/home/anna/.config/Code/User/mcp.json"), (.codex, "/home/anna/.codex/config.toml"),
    ]) func `each client has its own file for a user`(client: MCPClientKind, file: String) throws {
        #expect(try Self.edit(client).target.file == file)
    }
}
