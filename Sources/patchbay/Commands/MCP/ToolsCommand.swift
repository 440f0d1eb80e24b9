import ArgumentParser
import Client
import Model

struct ToolsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "tools",
        abstract: "List the tools of an app, or show one tool.",
        discussion: """
            An argument with ! is required. If the app is not reachable, shows the last known tools and the reason.

              patchbay tools shop-test-iphone
              patchbay tools shop-test-iphone tap_element
            """
    )

    @Argument(
        help: ArgumentHelp("List the tools of this endpoint.", valueName: "endpoint"),
        completion: .objects(.endpoints)
    )
    var selector: String
    @Argument(help: ArgumentHelp("Show this tool.", valueName: "tool"), completion: .objects(.tools))
    var tool: String?
    @OptionGroup var format: JSONOption
    @OptionGroup var options: GlobalOptions

    func run() async throws {
        let client = try options.client
        let id = try await EndpointSelector(text: selector, command: "patchbay tools").choose(client).id
        let list = try await client.tools.list(of: id)
        let output = options.output
        if let remark = ToolTable.remark(on: list, id), !format.json {
            try Console.errors().line(Console.plain(remark))
        }
        if let tool {
            let found = try Self.find(tool, in: list, of: id)
            try format.json
                ? output.json(["tool": .object(found)])
                : output.line(ToolTable.text(of: found, isColoured: output.isColoured))
        } else if format.json {
            var document: JSONObject = [
                "endpoint": .string(id.text), "tools": .array(list.tools.map { .object($0) }),
                "stale": .bool(list.isStale), "changed": .bool(list.hasChanged),
            ]
            document["limit"] = list.limit.map { .string($0) }
            document["reason"] = list.reason.map { .string($0) }
            document["hint"] = list.hint.map { .string($0) }
            try output.json(document)
        } else if list.tools.isEmpty {
            try output.line("\(id) has no tools.")
        } else {
            try output.table(ToolTable.table(of: list))
        }
    }

    /// Finds a tool by name.
    ///
    /// - Throws: `CLIError` with the most similar names.
    static func find(_ name: String, in list: ToolList, of id: EndpointID) throws(CLIError) -> JSONObject {
        if let tool = list.tool(named: name) { return tool }
        let names = SimilarNameFinder.of(name, among: list.tools.compactMap { $0["name"]?.string })
        throw CLIError.notFound(
            "\(id) has no tool \"\(SanitizedText(name))\"",
            candidates: names.dropFirst().isEmpty ? [] : names,
            try: "patchbay tools \(id)" + (names.first.map { " \(SanitizedText($0))" } ?? "")
        )
    }
}

/// The output of `patchbay tools`. All texts come from the app and are sanitized.
enum ToolTable {
    static func table(of list: ToolList) -> Table {
        Table(
            of: list.tools,
            [
                .init("TOOL", style: { _ in .bold }) { text($0["name"]) },
                .init("ARGUMENTS", .flexible) { tool in
                    arguments(of: tool).map { $0.name + ($0.isRequired ? "!" : "") }.joined(separator: " ")
                },
                .init("DESCRIPTION", .flexible, style: { _ in .dim }) { sentence(text($0["description"])) },
            ]
        )
    }

    /// Formats all facts of one tool.
    static func text(of tool: JSONObject, isColoured: Bool) -> String {
        let title = ANSIStyle.bold.paint(text(tool["name"]), isOn: isColoured)
        let arguments = Self.arguments(of: tool)
        let width = arguments.map(\.name.columns).max() ?? 0
        let lines = arguments.map { argument in
            let must = argument.isRequired ? ", required" : ""
            let about = argument.about.isEmpty ? "" : ": \(argument.about)"
            return "  \(argument.name.padded(to: width))  \(argument.type)\(must)\(about)"
        }
        let hints = tool["annotations"]?.object?.members.filter { $0.value.bool == true }.map {
            SanitizedText($0.name).text
        }
        return
            ([title, text(tool["description"])] + (lines.isEmpty ? ["  no arguments"] : lines)
            + (hints.flatMap { $0.isEmpty ? nil : ["  hints from the app: \($0.joined(separator: ", "))"] } ?? []))
            .joined(separator: "\n")
    }

    /// Returns a remark about a stale, changed or limited list; nil for a current list of all tools.
    static func remark(on list: ToolList, _ id: EndpointID) -> String? {
        switch (list.isStale, list.hasChanged) {
        case (true, _):
            "\(list.reason ?? "\(id) is not reachable"); these are the last known tools"
                + (list.hint.map { "\ntry: \($0)" } ?? "")
        case (false, true): "the tools of \(id) have changed since the last query"
        case (false, false): list.limit.map { "your grant is limited to \(SanitizedText($0, limit: 1_000))" }
        }
    }

    private struct Argument {
        let name: String
        let type: String
        let isRequired: Bool
        let about: String
    }

    private static func arguments(of tool: JSONObject) -> [Argument] {
        let schema = tool["inputSchema"]
        let node = JSONSchemaNode(schema ?? .null)
        let required = schema?["required"]?.array ?? []
        return (schema?["properties"]?.object?.members ?? []).map { property in
            let choices = property.value["enum"]?.array?.map { text($0) } ?? []
            return Argument(
                name: SanitizedText(property.name).text,
                type: (choices.isEmpty ? node.member(property.name)?.types?.names ?? [] : choices)
                    .joined(separator: " or "),
                isRequired: required.contains(.string(property.name)),
                about: text(property.value["description"])
            )
        }
    }

    private static func text(_ json: JSON?) -> String {
        SanitizedText(json?.string ?? json?.text ?? "", limit: 1_000).text
    }

    private static func sentence(_ text: String) -> String {
        String(text.firstRange(of: ". ").map { text[..<$0.lowerBound] } ?? text[...])
    }
}
