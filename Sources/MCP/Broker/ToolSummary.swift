import JSON
import Model

/// One tool of an app in one line.
struct ToolSummary: Hashable, Sendable {
    private static let limit = 100

    let name: String
    let text: String

    init(_ tool: JSONObject) {
        name = SanitizedText(tool["name"]?.string ?? "", limit: 128).text
        let first = (tool["description"] ?? tool["title"])?.string?.split(whereSeparator: \.isNewline).first ?? ""
        text = SanitizedText(first, limit: Self.limit).text
    }

    func fits(_ query: String) -> Bool {
        query.isEmpty || name.lowercased().contains(query) || text.lowercased().contains(query)
    }

    var line: String { text.isEmpty ? name : "\(name): \(text)" }

    var json: JSON { text.isEmpty ? ["name": .string(name)] : ["name": .string(name), "hint": .string(text)] }
}
