import ArgumentParser
import Client
import Model

struct DebugShowCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "show",
        abstract: "Show a state of an app, or one value in it, as JSON.",
        discussion: """
            --json prints the state on one line, and fails if it exceeds the limit.

              patchbay debug show debug-app-192-168-1-20
              patchbay debug show debug-app-192-168-1-20 --json | jq .user
              patchbay debug show debug-app-192-168-1-20 7 --pointer /user/name
            """
    )

    @OptionGroup var app: DebugAppOptions
    @Argument(help: ArgumentHelp("Show this state. Default: the newest.", valueName: "state"))
    var number: Int?
    @Option(help: ArgumentHelp("Show the value at this JSON pointer only.", valueName: "pointer"))
    var pointer: String?
    @Option(help: ArgumentHelp("Show at most this many bytes, up to 1000000.", valueName: "bytes"))
    var limit = 1_000_000
    @OptionGroup var launch: DebugLaunchOptions
    @OptionGroup var format: JSONOption

    func run() async throws {
        var arguments = launch.arguments
        arguments["limit"] = .number(JSONNumber(limit))
        arguments["number"] = number.map { .number(JSONNumber($0)) }
        arguments["pointer"] = pointer.map { .string($0) }
        let lines = try await app.call("state", arguments).lines
        if format.json { return try app.output.line(Self.document(in: lines, limit: limit)) }
        for line in lines { try app.output.line(Console.plain(line)) }
    }

    /// Returns the JSON document of a result on one line.
    ///
    /// - Throws: `CLIError` if the broker truncated the state, or if the app sent no valid JSON.
    static func document(in lines: [String], limit: Int) throws(CLIError) -> String {
        guard lines.count == 1 else {
            throw CLIError.failed(
                "the state has more than \(limit) bytes, so it is not one JSON document",
                try: "name one value with --pointer, or raise --limit"
            )
        }
        do throws(JSONError) { return try JSON(parsing: lines[0]).text } catch {
            throw CLIError.failed("the app sent no valid JSON: \(error)", try: "read the text without --json")
        }
    }
}

struct DebugShotCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "shot",
        abstract: "Save the picture of a state.",
        discussion: """
            The picture is scaled down to 1568 pixels. `--max-px 0` saves the original.

              patchbay debug shot debug-app-192-168-1-20 --output shot.jpg
              patchbay debug shot debug-app-192-168-1-20 7 --max-px 0 --output original.png
            """
    )

    @OptionGroup var app: DebugAppOptions
    @Argument(help: ArgumentHelp("Save the picture of this state. Default: the newest picture.", valueName: "state"))
    var number: Int?
    @Option(help: ArgumentHelp("Save the picture as this file; - is standard output.", valueName: "file"))
    var output: String
    @Option(help: ArgumentHelp("Limit the longest edge, up to 4096; 0 saves the original.", valueName: "pixels"))
    var maxPx: Int?
    @OptionGroup var launch: DebugLaunchOptions

    func validate() throws {
        if let maxPx, !(0...4_096).contains(maxPx) { throw ValidationError("--max-px must be 0 to 4096.") }
    }

    func run() async throws {
        let file = OutputFile(path: output)
        try file.check()
        var arguments = launch.arguments
        arguments["number"] = number.map { .number(JSONNumber($0)) }
        let result = try await app.call("shot", arguments, maxPixels: maxPx)
        let bytes = try await CallCommand.bytes(result.savedPart, for: file, from: app.options.client)
        try file.write(bytes)
        guard !file.isStandardOutput else { return }
        for line in result.lines(savedAs: output, size: bytes.count) { try app.output.line(Console.plain(line)) }
    }
}

struct DebugSendCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "send",
        abstract: "Send a state back to its app, which then shows it.",
        discussion: "  patchbay debug send debug-app-192-168-1-20 6",
        aliases: ["replay"]
    )

    @OptionGroup var app: DebugAppOptions
    @Argument(help: ArgumentHelp("Send this state.", valueName: "state"))
    var number: Int

    func run() async throws {
        _ = try await app.call("send_state", ["number": .number(JSONNumber(number))])
        try app.output.line("Sent state \(number).")
    }
}
