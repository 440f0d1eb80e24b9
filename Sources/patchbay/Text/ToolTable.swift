import Client
import JSON
import Model

/// An app's tools as `patchbay tools` shows them. Every word of theirs is the app's.
enum ToolTable {
    static func table(of list: ToolList) -> Table {
        var table = Table(columns: [
            .init(title: "TOOL"), .init(title: "ARGUMENTS", isFlexible: true), .init(title: "WHAT", isFlexible: true),
        ])
        table.rows = list.tools.map { tool in
            let arguments = Self.arguments(of: tool).map { $0.name + ($0.isRequired ? "!" : "") }
            return [
                .init(text(tool["name"]), .bold), .init(arguments.joined(separator: " ")),
                .init(sentence(text(tool["description"])), .dim),
            ]
        }
        return table
    }

    /// One tool with everything that it says of itself.
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
            + (hints.flatMap { $0.isEmpty ? nil : ["  it says of itself: \($0.joined(separator: ", "))"] } ?? []))
            .joined(separator: "\n")
    }

    /// What a reader should know of the list as a whole; nil where there is nothing.
    static func remark(on list: ToolList, _ id: EndpointID) -> String? {
        switch (list.isStale, list.hasChanged) {
        case (true, _):
            "\(list.reason ?? "\(id) does not say now what it offers"); this is what it offered last"
                + (list.next.map { "\ntry: \($0)" } ?? "")
        case (false, true): "\(id) offers other tools than when somebody looked last"
        case (false, false): nil
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
        let required = schema?["required"]?.array ?? []
        return (schema?["properties"]?.object?.members ?? []).map { property in
            let types = property.value["type"]?.array ?? property.value["type"].map { [$0] } ?? []
            let choices = property.value["enum"]?.array?.map { text($0) } ?? []
            return Argument(
                name: SanitizedText(property.name).text,
                type: choices.isEmpty
                    ? types.map { text($0) }.joined(separator: " or ") : choices.joined(separator: " or "),
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
