import ArgumentParser
import Client
import FoundationEssentials
import Model

struct DebugCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "debug",
        abstract: "Show, compare and replay the states of an app that is connected to the state debugger.",
        discussion: """
              patchbay debug debug-app-192-168-1-20
              patchbay debug show debug-app-192-168-1-20 7 --pointer /user/name
              patchbay debug diff debug-app-192-168-1-20 6 7
              patchbay debug shot debug-app-192-168-1-20 7 --output shot.jpg
              patchbay debug send debug-app-192-168-1-20 6
            """,
        subcommands: [
            DebugListCommand.self, DebugShowCommand.self, DebugDiffCommand.self, DebugShotCommand.self,
            DebugSendCommand.self,
        ],
        defaultSubcommand: DebugListCommand.self
    )
}

/// The launch whose states a `patchbay debug` command reads.
struct DebugLaunchOptions: ParsableArguments {
    @Flag(help: "Read the states of the app's last launch that has ended, for example after a crash.")
    var previous = false

    /// The argument for the tool.
    var arguments: JSONObject { previous ? ["previous": true] : [:] }
}

/// The app of a `patchbay debug` command.
struct DebugAppOptions: ParsableArguments {
    @Argument(
        help: ArgumentHelp("Use the app with this endpoint.", valueName: "endpoint"),
        completion: .objects(.endpoints)
    )
    var selector: String
    @OptionGroup var options: GlobalOptions

    var output: Console { options.output }

    /// Calls a tool of the app.
    ///
    /// - Throws: `CLIError` with the tool's message if the tool failed; `ClientError`.
    func call(_ tool: String, _ arguments: JSONObject = [:], maxPixels: Int? = nil) async throws -> ToolResultPrinter {
        let client = try options.client
        let endpoint = try await EndpointSelector(text: selector, command: "patchbay debug").choose(client)
        let id = endpoint.id
        guard endpoint.kind == .debug else { throw Self.otherKind(endpoint) }
        do {
            let result = try await client.tools.call(tool, of: id, arguments: arguments, maxPixels: maxPixels)
            let printer = ToolResultPrinter(result)
            guard !printer.isError else {
                throw CLIError(status: printer.status, message: printer.lines.joined(separator: "\n"))
            }
            return printer
        } catch let error as ClientError {
            throw CallCommand.unknownResultError(after: error, of: id) ?? error
        }
    }

    /// The error for an endpoint without states.
    static func otherKind(_ endpoint: Endpoint) -> CLIError {
        CLIError.usage(
            "\(endpoint.id) is of kind \(endpoint.kind), and not an app of the state debugger",
            try: "patchbay tools \(endpoint.id)"
        )
    }

    /// Calls a tool whose result is one JSON document.
    func document(_ tool: String, _ arguments: JSONObject = [:]) async throws -> JSONObject {
        guard case .bytes(let text)? = try await call(tool, arguments).savedPart,
            let object = (try? JSON(parsing: Array(text)))?.object
        else {
            throw CLIError.failed(
                "\"\(SanitizedText(selector))\" did not answer as an app of the state debugger",
                try: "patchbay list"
            )
        }
        return object
    }
}
