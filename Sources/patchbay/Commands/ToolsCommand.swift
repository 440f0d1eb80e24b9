import ArgumentParser
import Client
import JSON
import Model

struct ToolsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "tools",
        abstract: "List what an app offers to agents, or everything about one of its tools.",
        discussion: """
            An argument with ! must be given. Where the app cannot be asked now, it is what it offered last, and the \
            reason is said.

              patchbay tools shop-test-iphone
              patchbay tools shop-test-iphone tap_element
            """
    )

    @Argument(help: ArgumentHelp("Which endpoint.", valueName: "endpoint"))
    var selector: String
    @Argument(help: ArgumentHelp("Which of its tools.", valueName: "tool"))
    var tool: String?
    @OptionGroup var format: JSONOption
    @OptionGroup var options: GlobalOptions

    func run() async throws {
        let client = try options.client
        let endpoints = try await client.endpoints().endpoints
        let id = try EndpointSelector(text: selector, command: "patchbay tools").choose(among: endpoints).id
        let list = try await client.tools(of: id)
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
            var answer: JSONObject = [
                "endpoint": .string(id.text), "tools": .array(list.tools.map { .object($0) }),
                "stale": .bool(list.isStale), "changed": .bool(list.hasChanged),
            ]
            answer["reason"] = list.reason.map { .string($0) }
            answer["next"] = list.next.map { .string($0) }
            try output.json(answer)
        } else if list.tools.isEmpty {
            try output.line("\(id) offers no tools")
        } else {
            try output.table(ToolTable.table(of: list))
        }
    }

    /// - Throws: `CLIError` with the nearest names.
    static func find(_ name: String, in list: ToolList, of id: EndpointID) throws(CLIError) -> JSONObject {
        if let tool = list.tool(named: name) { return tool }
        let names = NearNames.of(name, among: list.tools.compactMap { $0["name"]?.string })
        throw CLIError(
            status: .notFound,
            message: "\(id) has no tool \"\(SanitizedText(name))\"",
            candidates: names.dropFirst().isEmpty ? [] : names,
            remedy: "patchbay tools \(id)" + (names.first.map { " \(SanitizedText($0))" } ?? "")
        )
    }
}
