import Model
import Registry

/// Which endpoints a caller means, and whether it may do that with them.
extension BrokerMCPServer {
    /// So many of those that fit are named.
    private static let candidates = 5

    func check(_ scope: Scope, _ caller: AgentCaller) throws(ToolError) {
        guard caller.may(scope) else {
            throw ToolError(
                "what you were granted does not allow \(scope.rawValue); ask the person who invited you for a grant that does"
            )
        }
    }

    /// Every endpoint that the caller may know of, with how far it is trusted.
    func seen(by caller: AgentCaller) async -> [Endpoint] {
        await trust.judged(await registry.endpoints.filter(caller.sees))
    }

    /// The one endpoint that a text means: its id, or a part of its names that no other one has.
    func endpoint(_ text: String, _ caller: AgentCaller) async throws(ToolError) -> Endpoint {
        let all = await seen(by: caller)
        if let exact = all.first(where: { $0.id.text == text }) { return exact }
        let fitting = all.filter { $0.fits(text) }
        let shown = SanitizedText(text, limit: 60)
        guard let first = fitting.first else {
            throw ToolError("no endpoint fits \"\(shown)\": endpoint_list shows those there are")
        }
        guard fitting.count == 1 else {
            let ids = fitting.prefix(Self.candidates).map(\.id.text).joined(separator: ", ")
            let more = fitting.count > Self.candidates ? " and \(fitting.count - Self.candidates) more" : ""
            throw ToolError("\"\(shown)\" fits \(fitting.count) endpoints, say which: \(ids)\(more)")
        }
        return first
    }

    func rows(_ endpoints: [Endpoint]) async -> [EndpointSummary] {
        let held = await trust.held(of: endpoints)
        var rows: [EndpointSummary] = []
        for endpoint in endpoints {
            rows.append(
                EndpointSummary(
                    endpoint,
                    needsToken: apps.wantsSecret(endpoint) || endpoint.wantsToken && !held.contains(endpoint.id),
                    tools: await apps.toolCount(of: endpoint)
                )
            )
        }
        return rows
    }
}
