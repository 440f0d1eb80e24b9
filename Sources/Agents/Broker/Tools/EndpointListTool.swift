import AccessControl
import Apps
import Model

/// Lists the endpoints that the principal may see.
struct EndpointListTool: BrokerTool {
    /// The endpoints that the argument `state` selects.
    enum StateFilter: String, CaseIterable {
        case online, offline, any

        func includes(_ endpoint: Endpoint) -> Bool {
            switch self {
            case .online: endpoint.state == .online || endpoint.state == .suspect
            case .offline: endpoint.state == .offline || endpoint.state == .blocked
            case .any: true
            }
        }
    }

    private static let endpoint = ToolParameter.endpointFilter
    private static let state = ToolParameter<StateFilter>.word("state", "default any")
    private static let cursor = ToolParameter.text("cursor", "nextCursor")

    let definition = ToolDefinition(
        name: "endpoint_list",
        description: "Lists running apps that can be called. Start here.",
        scope: .registryRead,
        optional: [Self.endpoint.property, Self.state.property, Self.cursor.property],
        annotations: ["readOnlyHint": true]
    )
    let directory: EndpointDirectory

    func call(_ request: ToolRequest, for principal: Principal) async throws(ToolError) -> ToolResult {
        let filter = (try request[Self.endpoint] ?? "").trimmed
        let state = try request[Self.state] ?? .any
        let cursor = try request[Self.cursor] ?? ""
        let revision = await directory.revision
        let all = await directory.listed(visibleTo: principal)
        let matching = all.filter { state.includes($0) && $0.matches(filter) && $0.id.text > cursor }
        let page = await directory.summaries(of: matching.prefix(EndpointDirectory.pageSize))
        var structure: JSONObject = [
            "revision": .number(JSONNumber(revision)),
            "endpoints": .array(page.map { .object($0.json) }),
        ]
        let rest = matching.count - page.count
        let next = rest > 0 ? page.last?.endpoint.id.text : nil
        structure["nextCursor"] = next.map(JSON.string)
        let more = next.map { "\(rest) more: cursor \($0)" }
        let near = filter.isEmpty ? nil : EndpointSuggestions(among: all).nearest(filter)
        return ToolResult(Self.text(page, more: more, of: all.count, near: near), structure)
    }

    private static func text(_ page: [EndpointSummary], more: String?, of all: Int, near: String?) -> String {
        guard !page.isEmpty else {
            guard all == 0 else {
                let question = near.map { "; did you mean \($0)?" } ?? ""
                return "none matches\(question); ask without endpoint, state and cursor for all \(all)"
            }
            return "none: start a debug build or plug a phone in, then endpoint_wait for it"
        }
        // Endpoints with the same status share a line: text and structure of ten endpoints must fit in 2.2 kB.
        var lines: [(status: String, ids: [String])] = []
        for summary in page {
            if let index = lines.firstIndex(where: { $0.status == summary.status }) {
                lines[index].ids.append(summary.endpoint.id.text)
            } else {
                lines.append((summary.status, [summary.endpoint.id.text]))
            }
        }
        // Clients that show only the text need the cursor too.
        let rest = more.map { [$0] } ?? []
        return (lines.map { "\($0.status): \($0.ids.joined(separator: ", "))" } + rest).joined(separator: "\n")
    }
}
