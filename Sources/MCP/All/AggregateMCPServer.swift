package import JSON
import Model
import Registry
import SystemIO

/// All apps at one address, `/all/mcp`: the tools of each under names that say whose they are.
///
/// Which tools are listed depends on what the caller may call and on nothing else: an app that is away keeps its tools in the
/// list, one that is slow or broken takes no other's time.
package struct AggregateMCPServer: MCPServer {
    private let desk: AppProxy

    package init(desk: AppProxy) { self.desk = desk }

    package func description(for caller: AgentCaller) async -> ServerDescription {
        ServerDescription(
            info: ["name": "patchbay-all", "title": "Patchbay: all apps", "version": .string(Version.text)],
            capabilities: ["tools": ["listChanged": true]],
            instructions:
                "Every tool belongs to one running app: its name begins with the app's alias and two underscores."
        )
    }

    package func answer(_ request: MCPRequest, of caller: AgentCaller) async throws(RPCError) -> JSONObject {
        switch request.method {
        case "tools/list":
            try request.checkPage()
            return ["tools": .array(await tools(for: caller))]
        case "tools/call": return try await call(request, caller)
        default: throw .unknownMethod(request.method)
        }
    }

    package func parameterHeaders(of tool: String, for caller: AgentCaller) async -> ParameterHeaders {
        guard let (endpoint, name) = await owner(of: tool, for: caller) else { return .none }
        guard await desk.parameterHeaders(of: name, at: endpoint.id, for: caller) != .none else { return .none }
        // By the schema as it is listed here, where a very long one is left out.
        return ParameterHeaders(of: AggregatedTool.schema(await desk.schema(of: name, at: endpoint.id)))
    }

    package func changes(for caller: AgentCaller) -> AsyncStream<ServerChange> { desk.changes(for: caller) }

    private func endpoints(for caller: AgentCaller) async -> [(alias: String, endpoint: Endpoint)] {
        var taken: Set<String> = []
        return await desk.registry.endpoints.compactMap { endpoint in
            guard AppProxy.speaksMCP(endpoint.kind), caller.may(.endpointCall, on: endpoint) else { return nil }
            let alias = ToolNamespace.alias(of: endpoint.id)
            // Sorted by id: of two with one alias it is always the same that has it.
            return taken.insert(alias).inserted ? (alias, endpoint) : nil
        }
    }

    private func tools(for caller: AgentCaller) async -> [JSON] {
        let endpoints = await endpoints(for: caller)
        return await withTaskGroup(of: (Int, [JSON]).self) { group in
            for (index, (alias, endpoint)) in endpoints.enumerated() {
                group.addTask {
                    let tools = await desk.toolsAtOnce(of: endpoint, for: caller)
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
            // Of two names of one app's that are cut, the hashes may be the same.
            return ToolListSanitizer.pass(all.sorted { $0.0 < $1.0 }.flatMap(\.1))
        }
    }

    /// The app that a listed tool belongs to, and what it calls it.
    private func owner(of name: String, for caller: AgentCaller) async -> (Endpoint, tool: String)? {
        guard let (alias, listed) = ToolNamespace.parts(of: name),
            let endpoint = await endpoints(for: caller).first(where: { $0.alias == alias })?.endpoint
        else { return nil }
        return (endpoint, await desk.tool(listedAs: name, alias: alias, of: endpoint.id) ?? listed)
    }

    private func call(_ request: MCPRequest, _ caller: AgentCaller) async throws(RPCError) -> JSONObject {
        guard let name = request.tool else {
            throw .invalidParams("tools/call must have the tool's name, a text")
        }
        guard let (endpoint, tool) = await owner(of: name, for: caller) else {
            throw .invalidParams("there is no tool of this name; tools/list has them all")
        }
        let alias = ToolNamespace.alias(of: endpoint.id)
        return try await AppMCPServer(endpoint.id, desk: desk, alias: alias).answer(
            request.with(request.params.with("name", .string(tool))),
            of: caller
        )
    }
}

extension JSONObject {
    fileprivate func with(_ name: String, _ value: JSON) -> JSONObject {
        var object = self
        object[name] = value
        return object
    }
}
