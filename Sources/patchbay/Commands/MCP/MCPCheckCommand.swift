import ArgumentParser
import FoundationEssentials
import Model

struct MCPCheckCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "check",
        abstract: "Connect to the MCP server as a client does, and report each step.",
        discussion: """
            Starts `patchbay mcp` with the same options, and makes the handshake, a ping, a list of the tools, and one \
            call that changes nothing. Fails with the reason and the next step.

              patchbay mcp check
              patchbay mcp check --app com.example.shop
              patchbay mcp check --endpoint shop-test-iphone --json
            """
    )

    @OptionGroup var subject: MCPSubjectOptions
    @OptionGroup var format: JSONOption
    @OptionGroup var options: GlobalOptions

    func run() async throws {
        // A command line that can never work has a better message here.
        do { _ = try options.client } catch  where error.status == .usage { throw error } catch {}
        let (output, isJSON) = (options.output, format.json)
        var steps: [MCPCheck.Step] = []
        let check = MCPCheck(arguments: arguments) { step in
            // With --json, a failure is the only output.
            if isJSON { steps.append(step) } else { try output.line(step.line) }
        }
        try await check.run()
        if isJSON { try output.document(MCPCheckReport(steps: steps)) } else { try output.line("The server works.") }
    }

    /// The arguments of `patchbay mcp` for the same server.
    private var arguments: [String] {
        ["mcp"] + subject.subject.arguments + (options.socket.map { ["--socket", $0] } ?? [])
            + (options.broker.map { ["--broker", $0] } ?? [])
    }
}

/// The output of `patchbay mcp check --json`.
private struct MCPCheckReport: Encodable {
    let steps: [MCPCheck.Step]
}

/// Runs an MCP server as a client does.
struct MCPCheck {
    /// The result of one step: a line of the output.
    struct Step: Encodable {
        let step: String
        let ok: Bool
        let milliseconds: Int
        let detail: String

        var line: String {
            "\(ok ? "ok    " : "failed") \(step.padded(to: 10)) \("\(milliseconds) ms".padded(to: 8)) \(detail)"
        }
    }

    /// The arguments of this program for the server.
    let arguments: [String]
    let report: (Step) throws -> Void

    /// The time for a response, in seconds. Clients wait for 10 s or longer.
    private static let limit = 10
    /// The time for the call of a tool, in seconds.
    private static let callLimit = 30
    /// Tools of AppReveal that only read. AppReveal marks no tool as read-only.
    private static let readOnlyTools = ["launch_context", "device_info", "get_screen", "list_windows"]

    /// Runs all steps.
    ///
    /// - Throws: `CLIError` for the first step that fails.
    func run() async throws {
        let server = try await step("start", "see the message; patchbay \(arguments.joined(separator: " ")) --help") {
            let server = try StdioServer("/proc/self/exe", arguments)
            return (server, "patchbay \(arguments.joined(separator: " "))")
        }
        let end: Result<Void, any Error>
        do { end = .success(try await talk(to: server)) } catch { end = .failure(error) }
        guard case .success = end else {
            _ = await server.end()
            return try end.get()
        }
        try await step("end", "run the command again with the client's log of the server") {
            guard await server.end() else {
                throw StdioServer.Failure.error(message: "the server did not end by itself")
            }
            return ((), "the server ended with its input")
        }
    }

    private func talk(to server: StdioServer) async throws {
        try await step("initialize", "patchbay doctor") {
            let client: JSON = ["name": "patchbay mcp check", "version": .string(Version.text)]
            let result = try await server.request(
                "initialize",
                ["protocolVersion": "2025-11-25", "capabilities": [:], "clientInfo": client],
                limit: Self.limit
            )
            await server.notify("notifications/initialized")
            let name = SanitizedText(result["serverInfo"]?["name"]?.string ?? "a server without a name")
            return ((), "\(name), MCP \(SanitizedText(result["protocolVersion"]?.string ?? "?"))")
        }
        try await step("ping", "patchbay doctor") {
            _ = try await server.request("ping", limit: Self.limit)
            return ((), "")
        }
        let tools = try await step("tools/list", "patchbay doctor") {
            let list = try await server.request("tools/list", limit: Self.callLimit)
            let tools = list["tools"]?.array ?? []
            if tools.contains(where: { $0["name"]?.string == BridgeTool.status }) {
                try Self.check(await call(BridgeTool.status, [:], server))
            }
            let isStale = list["_meta"]?["patchbay/stale"] == true
            return (tools, Formatting.count(tools.count, "tool") + (isStale ? ", from the cache: the app is away" : ""))
        }
        try await callOne(of: tools, server)
    }

    /// Makes one call that changes nothing.
    private func callOne(of tools: [JSON], _ server: StdioServer) async throws {
        if let choose = tools.first(where: { $0["name"]?.string == BridgeTool.choose }),
            let first = choose["inputSchema"]?["properties"]?["endpoint"]?["enum"]?.array?.first
        {
            try await step("choose", "patchbay list") {
                try Self.check(await call(BridgeTool.choose, ["endpoint": first], server))
                return ((), "several phones have the app; this check uses \(SanitizedText(first.string ?? ""))")
            }
        }
        guard let tool = Self.harmlessTool(among: tools) else {
            return try report(
                Step(step: "call", ok: true, milliseconds: 0, detail: "left out: no tool is marked as read-only")
            )
        }
        try await step("call", "patchbay status") {
            try Self.check(await call(tool, [:], server))
            return ((), "\(SanitizedText(tool))")
        }
    }

    private func call(_ tool: String, _ arguments: JSONObject, _ server: StdioServer) async throws -> JSON {
        let params: JSONObject = ["name": .string(tool), "arguments": .object(arguments)]
        return try await server.request("tools/call", params, limit: Self.callLimit)
    }

    /// Returns the name of a tool that changes nothing and needs no arguments.
    static func harmlessTool(among tools: [JSON]) -> String? {
        let names = tools.compactMap { $0["name"]?.string }
        if names.contains("endpoint_list") { return "endpoint_list" }
        if let known = readOnlyTools.first(where: names.contains) { return known }
        return tools.first { tool in
            tool["annotations"]?["readOnlyHint"] == true && tool["inputSchema"]?["required"]?.array?.isEmpty ?? true
                && tool["name"]?.string != BridgeTool.status
        }?["name"]?.string
    }

    /// Throws the failure in the result of a tool.
    static func check(_ result: JSON) throws(CLIError) {
        guard result["isError"] == true else { return }
        let structure = result["structuredContent"]
        let text = result["content"]?.array?.first?["text"]?.string ?? "the call failed without a reason"
        let status = ExitStatus.allCases.first { $0.code == structure?["code"]?.string }
        throw CLIError(
            status: status ?? .error,
            message: structure?["reason"]?.string ?? SanitizedText(text, limit: 500).text,
            candidates: structure?["candidates"]?.array?.compactMap(\.string) ?? [],
            hint: structure?["try"]?.string
        )
    }

    /// Runs and reports one step. Without a hint of its own, a failure gets `hint`.
    private func step<Value>(
        _ name: String,
        _ hint: String,
        _ body: () async throws -> (Value, String)
    ) async throws -> Value {
        let start = ContinuousClock.now
        func finish(_ isDone: Bool, _ detail: String) throws {
            let milliseconds = Int((ContinuousClock.now - start) / .milliseconds(1))
            try report(Step(step: name, ok: isDone, milliseconds: milliseconds, detail: detail))
        }
        do {
            let (value, detail) = try await body()
            try finish(true, detail)
            return value
        } catch let error as StdioServer.Failure {
            let failure = Self.failure(error, hint)
            try finish(false, failure.message)
            throw failure
        } catch var error as CLIError {
            error.hint = error.hint ?? hint
            try finish(false, error.message)
            throw error
        }
    }

    private static func failure(_ failure: StdioServer.Failure, _ hint: String) -> CLIError {
        switch failure {
        case .notStarted(let reason):
            CLIError.failed("the server could not be started: \(reason)", try: hint)
        case .ended(let message):
            CLIError.failed("the server ended" + (message.isEmpty ? "" : " with: \(message)"), try: hint)
        case .silent(let seconds):
            CLIError.temporary("the server did not respond within \(seconds) s", try: hint)
        case .error(let message): CLIError.failed(message, try: hint)
        }
    }
}
