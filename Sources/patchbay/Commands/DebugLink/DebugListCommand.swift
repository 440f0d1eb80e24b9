import ArgumentParser
import FoundationEssentials
import Model

struct DebugListCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list",
        abstract: "List the states that an app has sent.",
        discussion: """
            Patchbay holds the last 50 states, also after the app has disconnected. A picture is `held`, `dropped` (to save \
            memory), `invalid` (no PNG or JPEG file in base64), or `none`.

              patchbay debug list debug-app-192-168-1-20
              patchbay debug list debug-app-192-168-1-20 --json | jq '.states[-1].action'
            """,
        aliases: ["ls"]
    )

    @OptionGroup var app: DebugAppOptions
    @OptionGroup var launch: DebugLaunchOptions
    @OptionGroup var format: JSONOption

    func run() async throws {
        let document = try await app.document("states", launch.arguments)
        if format.json { return try app.output.json(document) }
        let states = document["states"]?.array ?? []
        guard !states.isEmpty else { return try app.output.line("No states yet. Use the app until it sends one.") }
        try app.output.table(Self.table(of: states))
    }

    /// Returns the table of the states, the oldest first.
    static func table(of states: [JSON]) -> Table {
        Table(
            of: states,
            [
                .init("STATE") { $0["number"]?.text ?? "" },
                .init("TIME") { state in
                    state["time"]?.string.flatMap { try? Date($0, strategy: .iso8601) }.map(Formatting.clock) ?? ""
                },
                .init("SIZE") { Formatting.bytes(UInt64(max(0, $0["bytes"]?.int ?? 0))) },
                .init("PICTURE") { $0["picture"]?.string ?? "" },
                .init("ACTION", .flexible) { Console.plain($0["action"]?.string ?? "") },
            ]
        )
    }
}

struct DebugDiffCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "diff",
        abstract: "Show the values that differ between two states.",
        discussion: "  patchbay debug diff debug-app-192-168-1-20 6 7"
    )

    @OptionGroup var app: DebugAppOptions
    @Argument(help: ArgumentHelp("Compare this older state.", valueName: "older"))
    var older: Int
    @Argument(help: ArgumentHelp("Compare this newer state.", valueName: "newer"))
    var newer: Int
    @OptionGroup var launch: DebugLaunchOptions
    @OptionGroup var format: JSONOption

    func run() async throws {
        var arguments = launch.arguments
        arguments["from"] = .number(JSONNumber(older))
        arguments["to"] = .number(JSONNumber(newer))
        let document = try await app.document("diff", arguments)
        if format.json { return try app.output.json(document) }
        for line in Self.lines(of: document) { try app.output.line(Console.plain(line)) }
    }

    /// Returns a line with `+`, `-` or `~` for each added, removed or changed value.
    static func lines(of diff: JSONObject) -> [String] {
        var lines = (diff["changes"]?.array ?? []).map { change in
            let pointer = change["pointer"]?.string ?? ""
            return switch (change["before"]?.string, change["after"]?.string) {
            case (let before?, let after?): "~ \(pointer): \(before) -> \(after)"
            case (let before?, nil): "- \(pointer): \(before)"
            case (nil, let after): "+ \(pointer): \(after ?? "")"
            }
        }
        if let omitted = diff["omittedChanges"]?.int, omitted > 0 { lines.append("\(omitted) more changes") }
        return lines.isEmpty ? ["The states are equal."] : lines
    }
}
