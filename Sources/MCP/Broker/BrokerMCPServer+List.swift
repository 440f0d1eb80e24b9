import JSON
import Model
import Registry

/// `endpoint_list`.
extension BrokerMCPServer {
    enum StateFilter: String, CaseIterable {
        case online, offline, any

        func admits(_ endpoint: Endpoint) -> Bool {
            switch self {
            case .online: endpoint.state == .online || endpoint.state == .suspect
            case .offline: endpoint.state == .offline || endpoint.state == .blocked
            case .any: true
            }
        }
    }

    /// Rows of one answer.
    static let pageSize = 50

    func list(_ arguments: ToolArguments, _ caller: AgentCaller) async throws(ToolError) -> ToolResult {
        try check(.registryRead, caller)
        let filter = try arguments.text("endpoint") ?? ""
        let state = try arguments.word("state", as: StateFilter.self) ?? .any
        let cursor = try arguments.text("cursor") ?? ""
        let revision = await registry.revision
        let all = await seen(by: caller)
        let fitting = all.filter { state.admits($0) && $0.fits(filter) && $0.id.text > cursor }
        let page = await rows(Array(fitting.prefix(Self.pageSize)))
        var structure: JSONObject = [
            "rev": .number(JSONNumber(Int(clamping: revision))), "endpoints": .array(page.map { .object($0.json) }),
        ]
        let rest = fitting.count - page.count
        let next = rest > 0 ? page.last?.endpoint.id.text : nil
        structure["next"] = next.map(JSON.string)
        return ToolResult(Self.text(page, more: next.map { "\(rest) more: cursor \($0)" }, of: all.count), structure)
    }

    private static func text(_ page: [EndpointSummary], more: String?, of all: Int) -> String {
        guard !page.isEmpty else {
            guard all == 0 else { return "none fits; ask without endpoint, state and cursor for all \(all)" }
            return "none: start a debug build or plug a phone in, then endpoint_wait for it"
        }
        // Those of one status in one line: ten of them have to fit into two kilobytes, beside their structure.
        var lines: [(status: String, ids: [String])] = []
        for row in page {
            if let index = lines.firstIndex(where: { $0.status == row.status }) {
                lines[index].ids.append(row.endpoint.id.text)
            } else {
                lines.append((row.status, [row.endpoint.id.text]))
            }
        }
        // Some clients show the text alone.
        let rest = more.map { [$0] } ?? []
        return (lines.map { "\($0.status): \($0.ids.joined(separator: ", "))" } + rest).joined(separator: "\n")
    }
}
