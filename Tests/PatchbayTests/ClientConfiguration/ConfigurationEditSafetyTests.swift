import Model
import Testing

@testable import patchbay

@Suite struct ConfigurationEditSafetyTests {
    private static let entry = ServerEntry(command: "patchbay", arguments: ["mcp"])

    private static func edit(_ client: MCPClientKind) throws -> ConfigurationEdit {
        let home = ["HOME": "/home/anna"]
        return ConfigurationEdit(
            target: try ConfigurationTarget(client, isProject: false, name: "patchbay", folder: "/", environment: home)
        )
    }

    private static func added(_ client: MCPClientKind, to text: String) throws -> String {
        String(decoding: try edit(client).adding(entry, to: Array(text.utf8)), as: UTF8.self)
    }

    private static func removed(_ client: MCPClientKind, from text: String) throws -> String? {
        try edit(client).removing(from: Array(text.utf8)).map { String(decoding: $0, as: UTF8.self) }
    }

    @Test func `a line comment of a JSON file with CR line ends does not get the server`() throws {
        let edited = try Self.added(.claude, to: "{\"a\": 1 // c\r}")
        #expect(try JSONTextEditor(Array(edited.utf8)).value(at: ["mcpServers", "patchbay", "command"]) == "patchbay")
        #expect(!edited.contains("\n"))
        #expect(try Self.added(.claude, to: edited) == edited)
        #expect(try Self.removed(.claude, from: edited)?.contains("patchbay") == false)
    }

    @Test func `an object with 20000 members is changed`() throws {
        let members = (0..<20000).map { "\"k\($0)\": 0" }.joined(separator: ", ")
        let edited = try Self.added(.claude, to: "{\(members)}")
        #expect(edited.contains("\"mcpServers\""))
    }

    @Test(arguments: ["[", "{a="]) func `a TOML value with deep nesting is refused`(open: String) throws {
        let text = "a = " + String(repeating: open, count: 100_000)
        let error = #expect(throws: CLIError.self) { try Self.added(.codex, to: text) }
        #expect(error?.message.contains("nested too deeply") == true)
    }

    @Test(arguments: [
        ("a = 1\r\n[mcp_servers.patchbay]\ncommand = \"patchbay\"\nargs = [\"mcp\"]\n  # keep", "a = 1\r\n  # keep"),
        ("a = 1\r\n[mcp_servers.patchbay]\ncommand = \"patchbay\"\nargs = [\"mcp\"]\n[x]\n", "a = 1\r\n[x]\n"),
        ("a = 1\n[mcp_servers.patchbay]\ncommand = \"patchbay\"\nargs = [\"mcp\"]\r\n[x]\n", "a = 1\n[x]\n"),
    ]) func `a removal keeps each byte around a TOML table with other line ends`(text: String, rest: String) throws {
        #expect(try Self.removed(.codex, from: text) == rest)
    }

    @Test(arguments: [
        "[[mcp_servers]]\ncommand = \"x\"\n", "[[mcp_servers.patchbay]]\ncommand = \"x\"\n", "a = 1\na = 2\n",
        "[a]\n[a]\n", "[mcp_servers.\"\\u{70}atchbay\"]\ncommand = \"x\"\n", "a = 1\rb = 2\n",
    ]) func `a TOML file is refused if a table at the end would make it invalid`(text: String) throws {
        let error = #expect(throws: CLIError.self) { try Self.added(.codex, to: text) }
        #expect(error?.status == .configuration)
    }

    @Test func `an escape in a TOML key has its meaning`() throws {
        let text = "[\"mcp\\u005fservers\".patchbay]\ncommand = \"patchbay\"\nargs = [\"mcp\"]\n"
        #expect(try Self.added(.codex, to: text) == text)
        #expect(try Self.removed(.codex, from: text) == "")
    }

    @Test func `TOML arrays of tables with the same subtables are no duplicates`() throws {
        let text = "[[a]]\nn = 1\n[a.b]\nn = 1\n[[a.c]]\nn = 1\n[[a]]\nn = 2\n[a.b]\nn = 2\n[[a.c]]\nn = 2\n"
        #expect(try Self.added(.codex, to: text).hasPrefix(text))
    }

    @Test(arguments: [
        ("mcp_servers = { other = { command = \"x\" } }", "line 1 as tables"),
        ("a = 1\n[[mcp_servers]]\n", "line 2 as tables"),
        ("[mcp_servers]\n\"patchbay\" = { command = \"patchbay\", args = [\"mcp\"] }\n", "remove the entry on line 2"),
        ("[mcp_servers]\npatchbay.command = \"patchbay\"\n", "remove the entry on line 2"),
        ("a = 1\nb", "repair line 2"),
    ]) func `the advice for a TOML file does not break it`(text: String, advice: String) throws {
        let error = #expect(throws: CLIError.self) { try Self.added(.codex, to: text) }
        #expect(error?.hint?.contains(advice) == true)
        #expect(error?.candidates == [])
    }

    @Test(arguments: [
        ("{\n\"a\": }", "repair line 2"), ("{\"mcpServers\": []}", "replace mcpServers in"),
        (
            "{\"mcpServers\": {\"patchbay\": {\"command\": \"patchbay\", \"args\": [\"mcp\", // no\n \"--all\"]}}}",
            "replace the entry"
        ),
    ]) func `the advice for a JSON file says what to repair`(text: String, advice: String) throws {
        let error = #expect(throws: CLIError.self) { try Self.added(.claude, to: text) }
        #expect(error?.hint?.contains(advice) == true)
    }

    @Test(arguments: ["mcp_servers = { other = { command = \"x\" } }", "[[mcp_servers]]\ncommand = \"x\"\n"])
    func `a TOML file without the server needs no removal by hand`(text: String) throws {
        #expect(try Self.removed(.codex, from: text) == nil)
    }

    @Test func `a server in an inline table is removed by hand`() throws {
        let text = "mcp_servers = { patchbay = { command = \"patchbay\" } }"
        let error = #expect(throws: CLIError.self) { try Self.removed(.codex, from: text) }
        #expect(error?.hint?.contains("line 1") == true)
    }
}
