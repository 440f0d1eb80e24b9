import JSON
import Model
import Registry

/// `endpoint_list`.
extension BrokerServer {
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

    func list(_ arguments: ToolArguments, _ caller: AgentCaller) async throws(ToolRefusal) -> ToolResult {
        try check(.registryRead, caller)
        let filter = try arguments.text("filter") ?? ""
        let state = try arguments.word("state", as: StateFilter.self) ?? .any
        let cursor = try arguments.text("cursor") ?? ""
        let revision = await registry.revision
        let fitting = await seen(by: caller).filter { state.admits($0) && $0.fits(filter) && $0.id.text > cursor }
        let page = await rows(Array(fitting.prefix(Self.pageSize)))
        var structure: JSONObject = [
            "rev": .number(JSONNumber(Int(clamping: revision))), "endpoints": .array(page.map { .object($0.json) }),
        ]
        if fitting.count > page.count, let last = page.last { structure["next"] = .string(last.endpoint.id.text) }
        return ToolResult(Self.text(page, more: fitting.count - page.count), structure)
    }

    private static func text(_ page: [EndpointRow], more: Int) -> String {
        guard !page.isEmpty else {
            return "none: start a debug build or plug a phone in, then endpoint_wait for it"
        }
        let rest = more > 0 ? ["\(more) more: ask with cursor"] : []
        return (page.map(\.line) + rest).joined(separator: "\n")
    }
}
