import AccessControl
import Apps
import Model

/// Lists the tools of an app, or shows one of them.
struct EndpointToolsTool: BrokerTool {
    private static let endpoint = ToolParameter.endpoint
    private static let name = ToolParameter.text("name", "one tool")
    private static let query = ToolParameter.text("query", "part of name or description")

    let definition = ToolDefinition(
        name: "endpoint_tools",
        description: "Lists the tools of an app; with name, the schema of one.",
        scope: .endpointCall,
        required: [Self.endpoint.property],
        optional: [Self.name.property, Self.query.property],
        annotations: ["readOnlyHint": true]
    )
    let directory: EndpointDirectory
    let apps: any AppCaller

    func call(_ request: ToolRequest, for principal: Principal) async throws(ToolError) -> ToolResult {
        let endpoint = try await directory.endpoint(of: request, for: principal)
        let list: AppToolList
        do { list = try await apps.tools(of: endpoint, for: principal) } catch {
            throw ToolError(error.message(for: .brokerAgent, at: endpoint.id))
        }
        var structure: JSONObject = ["endpoint": .string(endpoint.id.text)]
        if principal.tools != .all { structure["limit"] = .string("\(principal.tools)") }
        if let staleness = list.staleness {
            structure["stale"] = true
            structure["reason"] = .string(staleness.message(for: .brokerAgent, at: endpoint.id))
        }
        if list.hasChanged { structure["changed"] = true }
        if let name = try request[Self.name] {
            guard let tool = list.tools.first(where: { $0["name"]?.string == name }) else {
                let near = ToolNameSuggestions(name, list.tools)
                let limit = principal.tools == .all ? "" : " among \(principal.tools), the limit of your grant"
                throw ToolError(
                    "\(endpoint.id) has no tool \"\(SanitizedText(name))\"\(limit)\(near): "
                        + "endpoint_tools without name lists them"
                )
            }
            let sanitized = DisplayTextSanitizer.sanitized(.object(tool))
            structure["tool"] = sanitized
            return ToolResult(sanitized.text, structure)
        }
        let query = try request[Self.query]?.lowercased() ?? ""
        let summaries = list.tools.map(ToolSummary.init).filter { $0.matches(query) }
        structure["tools"] = .array(summaries.map(\.json))
        guard !summaries.isEmpty else {
            return ToolResult(Self.explanation(query, list.tools), structure)
        }
        var lines = summaries.map(\.line)
        if let staleness = list.staleness {
            let reason = staleness.message(for: .brokerAgent, at: endpoint.id)
            lines.insert("\(reason); these tools are from the last list", at: 0)
        }
        if principal.tools != .all { lines.insert("your grant is limited to \(principal.tools)", at: 0) }
        if list.hasChanged { lines.insert("the tools have changed since the last list", at: 0) }
        return ToolResult(lines.joined(separator: "\n"), structure)
    }

    /// Explains an empty list, with the names that resemble the query.
    private static func explanation(_ query: String, _ tools: [JSONObject]) -> String {
        guard !tools.isEmpty else { return "the app has no tools" }
        let near = ToolNameSuggestions(query, tools)
        let names = tools.prefix(10).map { ToolSummary($0).name }.joined(separator: ", ")
        let end = near.isEmpty ? "; some of the names are \(names)" : "\(near)"
        let shown = SanitizedText(query, limit: 60)
        return "no tool matches \"\(shown)\"\(end); without query, all \(tools.count) are listed"
    }
}

/// A one-line description of an app's tool.
struct ToolSummary: Hashable, Sendable {
    private static let limit = 100

    let name: String
    let text: String

    init(_ tool: JSONObject) {
        name = SanitizedText(tool["name"]?.string ?? "", limit: 128).text
        let first = (tool["description"] ?? tool["title"])?.string?.split(whereSeparator: \.isNewline).first ?? ""
        text = SanitizedText(first, limit: Self.limit).text
    }

    func matches(_ query: String) -> Bool {
        query.isEmpty || name.lowercased().contains(query) || text.lowercased().contains(query)
    }

    var line: String { text.isEmpty ? name : "\(name): \(text)" }

    var json: JSON { text.isEmpty ? ["name": .string(name)] : ["name": .string(name), "description": .string(text)] }
}

/// Sanitizes text of apps for agents.
enum DisplayTextSanitizer {
    private static let limit = 2_000

    /// Replaces control, bidirectional and zero-width characters in titles and descriptions, and truncates these texts. Other members are
    /// unchanged.
    static func sanitized(_ json: JSON) -> JSON {
        switch json {
        case .array(let elements): .array(elements.map(sanitized))
        case .object(let object):
            .object(
                JSONObject(
                    object.members.map { member in
                        let isText = member.name == "description" || member.name == "title"
                        let text = isText ? member.value.string.map { JSON.string(sanitized($0)) } : nil
                        return JSONObject.Member(name: member.name, value: text ?? sanitized(member.value))
                    }
                )
            )
        default: json
        }
    }

    private static func sanitized(_ text: String) -> String {
        text.prefix(limit).split(omittingEmptySubsequences: false, whereSeparator: \.isNewline)
            .map { SanitizedText($0, limit: limit).text }.joined(separator: "\n")
    }
}
