import ArgumentParser
import Client
import FoundationEssentials
import Model

struct CallCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "call",
        abstract: "Call a tool of an app.",
        discussion: """
            Arguments are converted by the tool's schema, which `patchbay tools` shows. Arguments that the schema does \
            not allow are refused before the call. Waits for an app that restarts. Exits with 1 if the tool \
            reports an error or if the result is unknown. The app gets the trace context of TRACEPARENT and TRACESTATE.

              patchbay call shop-test-iphone tap_element element_id=buy
              patchbay call shop-test-iphone screenshot --output shot.png
              patchbay call shop-test-iphone screenshot --max-px 0 --output original
              echo '{"path": [1, 2]}' | patchbay call shop-test-iphone draw --json-args -
            """
    )

    @Argument(
        help: ArgumentHelp("Call a tool of this endpoint.", valueName: "endpoint"),
        completion: .objects(.endpoints)
    )
    var selector: String
    @Argument(help: ArgumentHelp("Call this tool.", valueName: "tool"), completion: .objects(.tools))
    var tool: String
    @Argument(help: ArgumentHelp("Pass these arguments to the tool.", valueName: "key=value"))
    var words: [String] = []
    @Option(help: ArgumentHelp("Pass a JSON object as arguments; - reads standard input.", valueName: "json"))
    var jsonArgs: String?
    @Option(
        help: ArgumentHelp("Wait this long for an unreachable app, 0s to 1m. Default: 10s.", valueName: "time"),
        transform: { try DurationText.parse($0, from: 0, upTo: 60, as: "1m") }
    )
    var wait: DurationText?
    @Option(
        help: ArgumentHelp(
            "Limit the duration of the call, 1s to 2m. Default: 15s without progress.",
            valueName: "time"
        ),
        transform: { try DurationText.parse($0, upTo: 120, as: "2m") }
    )
    var timeout: DurationText?
    @Option(
        name: [.customLong("max-px"), .customLong("max-pixels")],
        help: ArgumentHelp(
            "Limit the longest edge of images, up to 4096; 0 returns a link to the original. Default: 1568.",
            valueName: "pixels"
        )
    )
    var maxPixels: Int?
    @Option(
        help: ArgumentHelp(
            "Save the first image or file of the result, or else its text; .png and .jpg select the format; - prints it.",
            valueName: "file"
        )
    )
    var output: String?
    @OptionGroup var format: JSONOption
    @OptionGroup var options: GlobalOptions

    func validate() throws {
        if let maxPixels, !(0...4_096).contains(maxPixels) { throw ValidationError("--max-px must be 0 to 4096.") }
    }

    func run() async throws {
        let file = output.map { OutputFile(path: $0) }
        try file?.check()
        let object = try await jsonArguments().map { try ToolArguments.object(in: $0) } ?? [:]
        let client = try options.client
        let endpoint = try await EndpointSelector(text: selector, command: "patchbay call").choose(client)
        let id = endpoint.id
        let list = try await client.tools.list(of: id)
        // A stale list may lack a new tool, and the broker knows the reason for a missing tool of a profile or of a
        // limited grant. An unknown tool is therefore not rejected here.
        let isBrokerAsked = list.isStale || list.limit != nil || endpoint.limits?.isEmpty == false
        let schema = isBrokerAsked ? list.tool(named: tool) : try ToolsCommand.find(tool, in: list, of: id)
        let arguments = try ToolArguments(of: tool, at: id, schema: schema?["inputSchema"])
            .merged(words, into: object)
        let result = try await result(of: id, arguments, from: client)
        let text = ToolResultPrinter(result)
        if text.isError {
            guard format.json else {
                throw CLIError(
                    status: text.status,
                    message: text.lines.joined(separator: "\n"),
                    hint: Self.hint(after: text.failure, of: tool, at: id)
                )
            }
            try options.output.json(["result": .object(result)])
            throw ExitCode(text.status.rawValue)
        }
        var lines = text.lines
        if let file {
            let bytes = try await Self.bytes(text.savedPart, for: file, from: client)
            try file.checkFormat(of: bytes)
            try file.write(bytes)
            if file.isStandardOutput { return }
            lines = text.lines(savedAs: file.path, size: bytes.count)
        }
        try format.json
            ? options.output.json(["result": .object(result)])
            : options.output.line(Console.plain(lines.joined(separator: "\n")))
    }

    /// Returns the next step after a call that was refused: the list of tools, or the arguments of the tool.
    static func hint(after failure: String?, of tool: String, at id: EndpointID) -> String? {
        switch failure {
        case "unknown-tool": "patchbay tools \(id)"
        case "refused", "invalid-arguments": "patchbay tools \(id) \(SanitizedText(tool))"
        default: nil
        }
    }

    /// Returns the content for the file of `--output`.
    static func bytes(
        _ part: ToolResultPrinter.SavedPart?,
        for file: OutputFile,
        from client: PatchbayClient
    ) async throws -> [UInt8] {
        switch part {
        case .bytes(let data): return Array(data)
        case .artifact(let sha): return try await client.tools.artifact(sha).bytes
        case nil:
            throw CLIError.failed(
                "the tool was called, but its result has no content for \"\(SanitizedText(file.path))\"",
                try: "inspect the result with --json instead of --output"
            )
        }
    }

    /// Calls the tool.
    ///
    /// - Throws: `ClientError`, or `CLIError` if the call may have been executed and must not be repeated blindly.
    private func result(
        of id: EndpointID,
        _ arguments: JSONObject,
        from client: PatchbayClient
    ) async throws -> JSONObject {
        let environment = ProcessInfo.processInfo.environment
        do {
            return try await client.tools.call(
                tool,
                of: id,
                arguments: arguments,
                wait: wait?.seconds,
                timeout: timeout?.seconds,
                maxPixels: maxPixels,
                imageFormat: output.flatMap { OutputFile(path: $0).imageFormat },
                trace: TraceContext { environment[$0.uppercased()].map { [$0] } ?? [] }
            )
        } catch let error as ClientError {
            throw Self.unknownResultError(after: error, of: id) ?? error
        }
    }

    /// Returns the error for a call that may have been executed; nil for a call that was not executed.
    static func unknownResultError(after error: ClientError, of id: EndpointID) -> CLIError? {
        switch error {
        case .connectionLost, .timedOut:
            CLIError.failed(
                "result unknown: \(id) may have executed the call, but the broker's response was lost: \(error)",
                try: "check the app's state before you call again"
            )
        default: nil
        }
    }

    private func jsonArguments() async -> [UInt8]? {
        guard let jsonArgs, jsonArgs == "-" else { return jsonArgs.map { Array($0.utf8) } }
        return await BlockingThread.value { StandardInput.all() }
    }
}
