import AccessControl
import Model
import SystemIO

/// The tools that a grant with a limit to certain tools may call.
extension ToolCatalog {
    /// Returns the tools of a list that the principal may call.
    static func allowed(_ tools: [JSON], on kind: EndpointKind, for principal: Principal) -> [JSON] {
        guard principal.tools != .all else { return tools }
        return tools.filter { tool in
            guard let object = tool.object, let name = object["name"]?.string else { return false }
            let call = MCPRequest("tools/call", ["name": .string(name)])
            let effect = ToolEffect(of: call, ToolAnnotations(of: object), on: kind)
            return principal.tools.allows(name, isReadOnly: effect == .readOnly)
        }
    }

    /// Lists the tools if the app has not been listed since its launch and the principal may call read-only tools only.
    /// Without a list, no tool is known to be read-only.
    ///
    /// - Throws: `AppError`, also after the time limit; the app's own `RPCError`, `CancellationError`.
    func listIfFilterNeedsIt(
        _ id: EndpointID,
        for principal: Principal,
        within limit: Duration? = nil
    ) async throws {
        guard principal.tools == .readOnly else { return }
        let isListed = await context.cache.record(of: id).toolCount != nil
        guard !isListed || pool.isListDue(of: id) else { return }
        guard let limit else {
            _ = try await list(CachedApp.tools, of: id, for: principal)
            return
        }
        let listed = try await withTimeout(limit, clock: context.clock) {
            try await list(CachedApp.tools, of: id, for: principal)
        }
        if listed == nil { throw AppError.noHandshake(seconds: limit.roundedSeconds) }
    }
}
