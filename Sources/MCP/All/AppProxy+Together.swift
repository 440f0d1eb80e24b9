import JSON
import Model
import SystemIO

/// What is asked of apps for the list of all.
extension AppProxy {
    /// An app's tools, live if it answers at once, else as they were; none where it was never heard.
    func toolsAtOnce(of endpoint: Endpoint, for caller: AgentCaller) async -> [JSON] {
        let fresh = try? await withDeadline(limits.oneOfAll, clock: clock) { [self] in
            try await freshList(CachedApp.tools, of: endpoint.id, for: caller, wait: .zero)
        }
        if let list = fresh ?? nil { return list["tools"]?.array ?? [] }
        return await shelvedList(CachedApp.tools, of: endpoint.id)?["tools"]?.array ?? []
    }

    /// A tool's schema for its arguments; nil where its app's list does not have it.
    func schema(of tool: String, at id: EndpointID) async -> JSON? {
        let tools = await shelf.record(of: id).list(of: CachedApp.tools)?["tools"]?.array
        return tools?.first { $0["name"]?.string == tool }?["inputSchema"]
    }

    /// An app's own name of the tool that is listed under that name; nil where its list does not have it.
    func tool(listedAs name: String, alias: String, of id: EndpointID) async -> String? {
        await shelf.record(of: id).list(of: CachedApp.tools)?["tools"]?.array?.lazy.compactMap { $0["name"]?.string }
            .first { ToolNamespace.name(of: $0, alias: alias) == name }
    }
}
