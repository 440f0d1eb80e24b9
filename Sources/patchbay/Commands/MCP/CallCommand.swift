import ArgumentParser
import Client
import FoundationEssentials
import JSON
import Model

struct CallCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "call",
        abstract: "Call a tool of an app, as an agent would.",
        discussion: """
            Values are what the tool's schema says that they are; `patchbay tools` shows it. An app that is being \
            restarted is waited for. Ends with 1 when the tool says that it failed, or nobody knows what became of the call.

              patchbay call shop-test-iphone tap_element element_id=buy
              patchbay call shop-test-iphone screenshot --output shot.jpg
              patchbay call shop-test-iphone screenshot --max-px 0 --output original.png
              echo '{"path": [1, 2]}' | patchbay call shop-test-iphone draw --json-args -
            """
    )

    @Argument(help: ArgumentHelp("Which endpoint.", valueName: "endpoint"))
    var selector: String
    @Argument(help: ArgumentHelp("Which of its tools.", valueName: "tool"))
    var tool: String
    @Argument(help: ArgumentHelp("The tool's arguments.", valueName: "key=value"))
    var words: [String] = []
    @Option(help: ArgumentHelp("Arguments as a JSON object; - reads it from standard input.", valueName: "json"))
    var jsonArgs: String?
    @Option(
        help: ArgumentHelp("How long to wait for an app that is away, 0 to 60. Default: 10.", valueName: "seconds")
    )
    var wait: Int?
    @Option(
        help: ArgumentHelp("How long the call may take in all, 1 to 120. Default: 15 of silence.", valueName: "seconds")
    )
    var timeout: Int?
    @Option(
        name: [.customLong("max-px"), .customLong("max-pixels")],
        help: ArgumentHelp(
            "The longest edge of a picture, up to 4096; 0 for a link to the original. Default: 1568.",
            valueName: "pixels"
        )
    )
    var maxPixels: Int?
    @Option(
        help: ArgumentHelp(
            "Where to save the result's first picture or file, else its text; - is standard output.",
            valueName: "file"
        )
    )
    var output: String?
    @OptionGroup var format: JSONOption
    @OptionGroup var options: GlobalOptions

    func validate() throws {
        if let wait, !(0...60).contains(wait) { throw ValidationError("--wait is 0 to 60 seconds") }
        if let timeout, !(1...120).contains(timeout) { throw ValidationError("--timeout is 1 to 120 seconds") }
        if let maxPixels, !(0...4_096).contains(maxPixels) { throw ValidationError("--max-px is 0 to 4096") }
    }

    func run() async throws {
        let file = output.map { OutputFile(path: $0) }
        try file?.check()
        let given = try await given().map { try Self.object(in: $0) } ?? [:]
        let client = try options.client
        let endpoints = try await client.endpoints().endpoints
        let id = try EndpointSelector(text: selector, command: "patchbay call").choose(among: endpoints).id
        let list = try await client.tools(of: id)
        // An old list is no reason to refuse a tool.
        let schema = list.isStale ? list.tool(named: tool) : try ToolsCommand.find(tool, in: list, of: id)
        let arguments = try Self.arguments(words, beside: given, schema: schema?["inputSchema"])
        let result = try await result(of: id, arguments, from: client)
        let text = ToolResultPrinter(result)
        if text.isError {
            guard format.json else { throw CLIError(status: .error, message: text.lines.joined(separator: "\n")) }
            try options.output.json(["result": .object(result)])
            throw ExitCode(ExitStatus.error.rawValue)
        }
        var lines = text.lines
        if let file {
            let bytes = try await Self.bytes(text.yield, for: file, from: client)
            try file.write(bytes)
            if file.isStandardOutput { return }
            lines = text.lines(savedAs: file.path, size: bytes.count)
        }
        try format.json
            ? options.output.json(["result": .object(result)])
            : options.output.line(Console.plain(lines.joined(separator: "\n")))
    }

    /// What goes into the file.
    private static func bytes(
        _ yield: ToolResultPrinter.Yield?,
        for file: OutputFile,
        from client: PatchbayClient
    ) async throws -> [UInt8] {
        switch yield {
        case .bytes(let data): return Array(data)
        case .artifact(let sha): return try await client.artifact(sha)
        case nil:
            throw CLIError(
                status: .error,
                message: "the tool was called, and its result has nothing to save as \"\(SanitizedText(file.path))\"",
                remedy: "look at what it has with --json instead of --output"
            )
        }
    }

    /// - Throws: `ClientError`; a `CLIError` where the call may have been carried out, so that nobody repeats it blindly.
    private func result(
        of id: EndpointID,
        _ arguments: JSONObject,
        from client: PatchbayClient
    ) async throws -> JSONObject {
        do {
            return try await client.call(
                tool,
                of: id,
                arguments: arguments,
                wait: wait,
                timeout: timeout,
                maxPixels: maxPixels
            )
        } catch let error as ClientError {
            throw Self.complaint(about: error, after: id) ?? error
        }
    }

    /// For what may have been carried out; nil for what was not.
    static func complaint(about error: ClientError, after id: EndpointID) -> CLIError? {
        switch error {
        case .connectionLost, .timedOut:
            CLIError(
                status: .error,
                message: "delivered, result unknown, while \(id) had the call: \(error)",
                remedy: "look at the app's state before you call again"
            )
        default: nil
        }
    }

    /// What is given as JSON.
    ///
    /// - Throws: `CLIError`.
    static func object(in bytes: [UInt8]) throws(CLIError) -> JSONObject {
        let example = #"--json-args '{"key": "value"}'"#
        let json: JSON
        do throws(JSONError) {
            json = try JSON(parsing: bytes)
        } catch {
            throw .usage("the arguments cannot be read: \(error)", try: example)
        }
        guard let object = json.object else {
            throw .usage("the arguments must be a JSON object, not \(json.kind)", try: example)
        }
        return object
    }

    /// What is given, and what the words add to it.
    ///
    /// - Throws: `CLIError`.
    static func arguments(
        _ words: [String],
        beside given: JSONObject,
        schema: JSON?
    ) throws(CLIError) -> JSONObject {
        var arguments = given
        for word in words {
            let argument = try ToolArgument(word)
            arguments[argument.name] = try argument.value(by: schema?["properties"]?[argument.name])
        }
        return arguments
    }

    private func given() async -> [UInt8]? {
        guard let jsonArgs, jsonArgs == "-" else { return jsonArgs.map { Array($0.utf8) } }
        return await BlockingThread.value { StandardInput.all() }
    }
}

/// `key=value` of a command line, as the tool's schema wants it.
struct ToolArgument: Equatable {
    let name: String
    let text: String

    /// - Throws: `CLIError`.
    init(_ word: String) throws(CLIError) {
        guard let sign = word.firstIndex(of: "="), sign != word.startIndex else {
            throw .usage("\"\(SanitizedText(word))\" is not KEY=VALUE", try: "patchbay call --help")
        }
        name = String(word[..<sign])
        text = String(word[word.index(after: sign)...])
    }

    /// The value by the schema of its property; where that says nothing, what looks like JSON is.
    ///
    /// - Throws: `CLIError` where the text cannot be what the schema wants.
    func value(by schema: JSON?) throws(CLIError) -> JSON {
        let types = schema?["type"]?.array?.compactMap(\.string) ?? (schema?["type"]?.string.map { [$0] } ?? [])
        let json = try? JSON(parsing: text)
        if types.contains("string") {
            return json?.isNull == true && types.contains("null") ? .null : .string(text)
        }
        guard !types.isEmpty else { return json.flatMap { $0.string == nil ? $0 : nil } ?? .string(text) }
        guard let json, types.contains(where: { Self.is(json, $0) }) else {
            throw .usage(
                "\(SanitizedText(name)) must be \(types.map { SanitizedText($0).text }.joined(separator: " or ")), and "
                    + "\"\(SanitizedText(text))\" is not",
                try: "patchbay tools ENDPOINT TOOL"
            )
        }
        return json
    }

    private static func `is`(_ json: JSON, _ type: String) -> Bool {
        switch type {
        case "integer": json.int != nil
        case "number": json.number != nil
        case "boolean": json.bool != nil
        case "array": json.array != nil
        case "object": json.object != nil
        case "null": json.isNull
        default: false
        }
    }
}
