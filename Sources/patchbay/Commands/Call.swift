import ArgumentParser
import Client
import FoundationEssentials
import JSON
import Model

struct Call: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Call a tool of an app, as an agent would.",
        discussion: """
            Values are what the tool's schema says that they are; `patchbay tools` shows it. An app that is being \
            restarted is waited for. Ends with 1 when the tool says that it failed.

              patchbay call shop-test-iphone tap_element element_id=buy
              patchbay call shop-test-iphone screenshot --output shot.jpg
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
    @Option(help: ArgumentHelp("How long to wait for an app that is away, in seconds.", valueName: "seconds"))
    var wait: Int?
    @Option(help: ArgumentHelp("The longest edge of a picture; 0 for a link to the original.", valueName: "pixels"))
    var maxPixels: Int?
    @Option(help: ArgumentHelp("Where to save the first picture or file of the result.", valueName: "file"))
    var output: String?
    @OptionGroup var format: JSONOption
    @OptionGroup var options: GlobalOptions

    func validate() throws {
        if let wait, !(0...60).contains(wait) { throw ValidationError("--wait is 0 to 60 seconds") }
        if let maxPixels, !(0...4_096).contains(maxPixels) { throw ValidationError("--max-pixels is 0 to 4096") }
    }

    func run() async throws {
        let client = try options.client
        let endpoints = try await client.endpoints().endpoints
        let id = try EndpointSelector(text: selector, command: "patchbay call").choose(among: endpoints).id
        let list = try await client.tools(of: id)
        // An old list is no reason to refuse a tool.
        let schema = list.isStale ? list.tool(named: tool) : try Tools.find(tool, in: list, of: id)
        let arguments = try Self.arguments(words, await given(), schema: schema?["inputSchema"])
        let result = try await result(of: id, arguments, from: client)
        let text = ToolResultText(result)
        if let output, let file = text.file { try Self.save(file, to: output) }
        if format.json {
            try options.output.json(["result": .object(result)])
            if text.isError { throw ExitCode(ExitStatus.error.rawValue) }
        } else if text.isError {
            throw Complaint(status: .error, message: text.lines.joined(separator: "\n"))
        } else {
            try options.output.line(Output.plain(text.lines.joined(separator: "\n")))
        }
    }

    /// - Throws: `ClientError`; a `Complaint` where the call may have been carried out, so that nobody repeats it blindly.
    private func result(
        of id: EndpointID,
        _ arguments: JSONObject,
        from client: PatchbayClient
    ) async throws -> JSONObject {
        do {
            return try await client.call(tool, of: id, arguments: arguments, wait: wait, maxPixels: maxPixels)
        } catch ClientError.connectionLost {
            throw Complaint(
                status: .error,
                message: "delivered, result unknown: the broker went away while \(id) had the call",
                remedy: "look at the app's state before you call again"
            )
        }
    }

    /// What is given as JSON, and what the words add to it.
    ///
    /// - Throws: `Complaint`.
    static func arguments(_ words: [String], _ given: [UInt8]?, schema: JSON?) throws(Complaint) -> JSONObject {
        var arguments = JSONObject()
        if let given {
            do throws(JSONError) {
                guard let object = try JSON(parsing: given).object else {
                    throw JSONError(reason: .unexpected, offset: 0)
                }
                arguments = object
            } catch {
                throw .usage("the arguments are no JSON object: \(error)", try: "patchbay call --help")
            }
        }
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

    private static func save(_ file: Data, to path: String) throws(Complaint) {
        do {
            try file.write(to: URL(filePath: path))
        } catch {
            throw Complaint(status: .error, message: "\(path) cannot be written: \(error)")
        }
    }
}
