import ArgumentParser
import Model
import Testing

@testable import patchbay

@Suite struct MCPCommandTests {
    @Test func `mcp serves by itself, and has commands for the clients' configuration`() throws {
        let serve = try #require(try Patchbay.parseAsRoot(["mcp", "--app", "com.example.shop"]) as? MCPCommand)
        #expect(serve.subject.subject == .app("com.example.shop"))
        let words = ["mcp", "install", "codex", "--project", "--app", "shop", "--broker", "lab", "--dry-run"]
        let install = try #require(try Patchbay.parseAsRoot(words) as? MCPInstallCommand)
        #expect(install.subject.subject == .app("shop"))
        #expect(install.place.client == .codex && install.place.project && install.place.isDryRun)
        #expect(install.options.broker == "lab")
        #expect(try Patchbay.parseAsRoot(["mcp", "check", "--endpoint", "shop"]) is MCPCheckCommand)
    }

    @Test(arguments: [
        ["mcp", "--app", "a", "--endpoint", "b"], ["mcp", "--all", "--app", "a"], ["mcp", "--app", " "],
        ["mcp", "install", "claude", "--name", "a b"], ["mcp", "install", "emacs"], ["mcp", "install"],
        ["pair", "--socket", "/a", "--remote"], ["pair", "--socket", "/a", "--detach"],
        ["pair", "--socket", "/a", "--uses", "2"], ["pair", "--socket", ""],
        ["pair", "--socket", "/a", "--scope", "admin"],
    ]) func `options that exclude each other are refused`(words: [String]) {
        #expect(throws: (any Error).self) { try Patchbay.parseAsRoot(words) }
    }

    @Test func `the socket of pair is not the broker's socket`() throws {
        let pair = try #require(
            try Patchbay.parseAsRoot(["pair", "--socket", "/a", "--read-only", "--grant-ttl", "1d"]) as? PairCommand
        )
        #expect(pair.socket == "/a")
    }

    @Test(
        arguments: [
            (#"[{"name":"tap"},{"name":"endpoint_list"}]"#, "endpoint_list"),
            (#"[{"name":"tap"},{"name":"launch_context"}]"#, "launch_context"),
            (#"[{"name":"a"},{"name":"b","annotations":{"readOnlyHint":true}}]"#, "b"),
            (#"[{"name":"b","annotations":{"readOnlyHint":true},"inputSchema":{"required":["x"]}}]"#, nil),
            (#"[{"name":"patchbay_status","annotations":{"readOnlyHint":true}},{"name":"tap"}]"#, nil),
        ] as [(String, String?)]
    ) func `a check calls only a tool that changes nothing and needs no arguments`(
        tools: String,
        name: String?
    ) throws { #expect(MCPCheck.harmlessTool(among: try JSON(parsing: tools).array ?? []) == name) }

    @Test func `a check lists the candidates of an ambiguous name`() throws {
        let call = #"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"patchbay_status"}}"#
        let failure = CLIError(status: .usage, message: "2 endpoints match", candidates: ["shop-a", "shop-b"])
        let response = BridgeServer.response(to: try ClientMessage(Array(call.utf8)), because: failure)

        let error = #expect(throws: CLIError.self) { try MCPCheck.check(try #require(response?["result"])) }
        #expect(error?.candidates == ["shop-a", "shop-b"])
    }
}
