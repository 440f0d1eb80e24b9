package import AccessControl
package import Model
import Registry
import SystemIO

/// Handles requests for the tools of all apps of this host, at `/all/mcp`, under names that contain the app's alias.
///
/// The list depends only on the principal's permissions. An offline app keeps its tools in the list, and a slow or broken
/// app does not delay the others. The apps of other hosts of a team are not part of it: `/mcp` and `/e/{id}/mcp` reach them.
package struct AggregateRequestHandler: MCPRequestHandler {
    private let proxy: AppProxy

    package init(proxy: AppProxy) { self.proxy = proxy }

    package func description(for principal: Principal) async -> HandlerDescription {
        HandlerDescription(
            info: ["name": "patchbay-all", "title": "Patchbay: all apps", "version": .string(Version.text)],
            capabilities: ["tools": ["listChanged": true]],
            instructions:
                "Every tool belongs to one running app: its name begins with the app's alias and two underscores."
        )
    }

    package func answer(_ request: MCPRequest, of principal: Principal) async throws(RPCError) -> JSONObject {
        switch request.method {
        case "tools/list":
            try request.rejectCursor()
            return ["tools": .array(await tools(for: principal))]
        case "tools/call": return try await call(request, principal)
        default: throw .methodNotFound(request.method)
        }
    }

    package func parameterHeaders(of tool: String, for principal: Principal) async -> ParameterHeaders {
        guard let (endpoint, name) = await app(of: tool, for: principal) else { return .none }
        let catalog = proxy.catalog
        guard await catalog.parameterHeaders(of: name, at: endpoint.id, for: principal) != .none else { return .none }
        // Reads the schema as it is listed here; a schema over the size limit is left out of the list.
        return ParameterHeaders(of: AggregatedTool.schema(await catalog.schema(of: name, at: endpoint.id)))
    }

    package func changes(for principal: Principal) -> AsyncStream<ServerChange> {
        proxy.changeMonitor.changes(for: principal)
    }

    package func changedLists(for principal: Principal) async -> Set<ServerChange> {
        for (_, endpoint) in await endpoints(for: principal)
        where await proxy.catalog.changedLists(of: endpoint.id).contains(.tools) {
            return [.tools]
        }
        return []
    }

    private func endpoints(for principal: Principal) async -> [(alias: String, endpoint: Endpoint)] {
        var taken: Set<String> = []
        return await proxy.context.registry.endpoints.compactMap { endpoint in
            guard proxy.pool.mayHaveTools(endpoint), principal.may(.endpointCall, on: endpoint) else { return nil }
            let alias = ToolNamespace.alias(of: endpoint.id)
            // The endpoints are sorted by ID, so the same one always wins an alias that two share.
            return taken.insert(alias).inserted ? (alias, endpoint) : nil
        }
    }

    private func tools(for principal: Principal) async -> [JSON] {
        let all = await endpoints(for: principal)
        let ids = Set(all.map(\.endpoint.id))
        // The tools of one launch are listed once. Calls of the other names still work.
        let endpoints = all.filter { one in one.endpoint.sameLaunchAs.map { !ids.contains($0) } ?? true }
        return await withTaskGroup(of: (Int, [JSON]).self) { group in
            for (index, (alias, endpoint)) in endpoints.enumerated() {
                group.addTask {
                    let tools = await proxy.catalog.toolsWithinLimit(of: endpoint, for: principal)
                    return (
                        index,
                        tools.compactMap { tool in
                            tool.object.flatMap { AggregatedTool.make(of: $0, on: endpoint, alias: alias) }.map {
                                .object($0)
                            }
                        }
                    )
                }
            }
            var all: [(Int, [JSON])] = []
            for await some in group { all.append(some) }
            // Two truncated tool names of one app may have the same hash.
            return ListSanitizer.sanitize(all.sorted { $0.0 < $1.0 }.flatMap(\.1), of: CachedApp.tools)
        }
    }

    /// Returns the app that a listed tool belongs to, and the app's own name of the tool.
    private func app(of name: String, for principal: Principal) async -> (Endpoint, tool: String)? {
        guard let (alias, listed) = ToolNamespace.parts(of: name),
            let endpoint = await endpoints(for: principal).first(where: { $0.alias == alias })?.endpoint
        else { return nil }
        return (endpoint, await proxy.catalog.tool(listedAs: name, alias: alias, of: endpoint.id) ?? listed)
    }

    private func call(_ request: MCPRequest, _ principal: Principal) async throws(RPCError) -> JSONObject {
        guard let name = request.tool else {
            throw .invalidParams("tools/call requires a name, a string")
        }
        guard let (endpoint, tool) = await app(of: name, for: principal) else {
            throw .invalidParams("there is no tool with this name; tools/list returns all names")
        }
        let alias = ToolNamespace.alias(of: endpoint.id)
        return try await AppRequestHandler(endpoint.id, proxy: proxy, alias: alias).answer(
            request.with(request.params.with("name", .string(tool))),
            of: principal
        )
    }
}

/// Queries the apps for the aggregated list.
extension ToolCatalog {
    /// Returns the app's tools that the principal may call: live if the app answers within `timeouts.aggregatedList`,
    /// otherwise from the cache. Empty if the app has never been listed.
    func toolsWithinLimit(of endpoint: Endpoint, for principal: Principal) async -> [JSON] {
        let fresh = try? await withTimeout(context.timeouts.aggregatedList, clock: context.clock) {
            try await freshList(CachedApp.tools, of: endpoint.id, for: principal, wait: .zero)
        }
        var list = fresh ?? nil
        if list == nil { list = await cachedList(CachedApp.tools, of: endpoint.id) }
        return Self.allowed(list?["tools"]?.array ?? [], on: endpoint.kind, for: principal)
    }

    /// Returns the app's own name of an aggregated tool; nil if the app does not list the tool.
    func tool(listedAs name: String, alias: String, of id: EndpointID) async -> String? {
        await context.cache.record(of: id).list(of: CachedApp.tools)?["tools"]?.array?.lazy.compactMap {
            $0["name"]?.string
        }
        .first { ToolNamespace.name(of: $0, alias: alias) == name }
    }
}

/// An app's tool as the aggregated list shows it: the description begins with the app's name and is truncated.
enum AggregatedTool {
    static let descriptionLimit = 160
    /// The size limit of a schema in bytes. A larger schema is left out, and the app validates the arguments itself.
    private static let schemaLimit = 16 * 1_024

    /// Makes the aggregated entry of an app's tool; nil for a tool without a name.
    static func make(of tool: JSONObject, on endpoint: Endpoint, alias: String) -> JSONObject? {
        guard let name = tool["name"]?.string else { return nil }
        let place = endpoint.location.machine ?? endpoint.location.deviceName
        let location =
            place.map { " on \($0.text)" } ?? endpoint.location.udid.map { " on phone \($0.text.suffix(6))" } ?? ""
        let app = endpoint.app.isEmpty ? endpoint.name : endpoint.app
        let text = "[\(SanitizedText("\(app.text)\(location)", limit: 80))] \(tool["description"]?.string ?? name)"
        var listed: JSONObject = [
            "name": .string(ToolNamespace.name(of: name, alias: alias)),
            "description": .string(truncated(SanitizedText(text, limit: 1_024).text)),
            "inputSchema": schema(tool["inputSchema"]) ?? ["type": "object", "properties": [:]],
        ]
        listed["outputSchema"] = schema(tool["outputSchema"])
        listed["annotations"] = annotations(tool["annotations"])
        return listed
    }

    private static func truncated(_ text: String) -> String {
        text.count <= descriptionLimit ? text : "\(text.prefix(descriptionLimit - 1))…"
    }

    /// Returns the schema, or nil if it is not an object or exceeds `schemaLimit`.
    static func schema(_ schema: JSON?) -> JSON? {
        guard let schema, schema.object != nil, schema.bytes.count <= schemaLimit else { return nil }
        return schema
    }

    /// Keeps only the boolean annotations. A title is free text from the app and is dropped.
    private static func annotations(_ annotations: JSON?) -> JSON? {
        let hints = annotations?.object?.members.filter { $0.value.bool != nil } ?? []
        return hints.isEmpty ? nil : .object(JSONObject(hints))
    }
}
