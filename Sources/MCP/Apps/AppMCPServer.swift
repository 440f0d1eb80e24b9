import AccessControl
package import JSON
package import Model
import SystemIO

/// Serves one app at `/e/{id}/mcp`: the app's own tools, resources and prompts, also while the app restarts.
package struct AppMCPServer: MCPServer {
    /// The maximum image edge in pixels, for clients that cannot specify one. Models scale larger images down to this
    /// size anyway.
    private static let maxPixels = 1_568

    private let id: EndpointID
    private let proxy: AppProxy
    /// The prefix of tool names for a caller that sees the tools of several apps.
    private let alias: String?

    package init(_ id: EndpointID, proxy: AppProxy) { self.init(id, proxy: proxy, alias: nil) }

    init(_ id: EndpointID, proxy: AppProxy, alias: String?) {
        self.id = id
        self.proxy = proxy
        self.alias = alias
    }

    package func description(for caller: AgentCaller) async -> ServerDescription {
        await proxy.descriptionReader.description(of: id, for: caller)
    }

    package func answer(_ request: MCPRequest, of caller: AgentCaller) async throws(RPCError) -> JSONObject {
        do {
            let asking = try await proxy.elicitationBridge.runSuspendable(request, at: id, of: caller) {
                try await handleDirect($0, caller)
            }
            if let asking { return asking }
            return try await handleDirect(request, caller)
        } catch let error as RPCError {
            throw error
        } catch {
            let failure = AppError(error, at: id)
            throw RPCError(-32_603, failure.message(for: .appAgent), data: ["failure": .string(failure.code)])
        }
    }

    /// Handles a request without support for suspension.
    private func handleDirect(_ request: MCPRequest, _ caller: AgentCaller) async throws -> JSONObject {
        switch request.method {
        case "tools/call": return try await call(request, caller)
        case let method where ToolCatalog.members[method] != nil:
            // The pages of the app's list are returned as one page.
            try request.rejectCursor()
            return try await list(method, caller)
        default:
            return try await proxy.sender.send(request, at: id, for: caller, wait: proxy.timeouts.wait).outcome.get()
        }
    }

    package func parameterHeaders(of tool: String, for caller: AgentCaller) async -> ParameterHeaders {
        await proxy.catalog.parameterHeaders(of: tool, at: id, for: caller)
    }

    package func changes(for caller: AgentCaller) -> AsyncStream<ServerChange> {
        proxy.changeMonitor.changes(of: id, for: caller)
    }

    /// Calls a tool. A failure is returned in the tool result, because models read results and not protocol errors.
    private func call(_ request: MCPRequest, _ caller: AgentCaller) async throws -> JSONObject {
        guard let tool = request.tool else {
            throw RPCError.invalidParams("tools/call requires a name, a string")
        }
        do {
            let result = try await proxy.call(
                // The client has its own timeout and cancels the request.
                request.withArgumentsAsObject.with(timeout: proxy.timeouts.total),
                at: id,
                for: caller,
                wait: proxy.timeouts.wait,
                maxPixels: Self.maxPixels
            )
            return await proxy.catalog.withToolSuggestions(result, tool, at: id, for: caller, alias: alias)
        } catch let failure as AppError {
            return failure.result(for: .appAgent)
        } catch let error as RPCError {
            guard error.isAboutNames,
                let near = await proxy.catalog.nearestTools(ifMissing: tool, at: id, for: caller, alias: alias),
                !near.isEmpty
            else { throw error }
            throw RPCError(error.code, "\(error.message)\(near)", data: error.data)
        }
    }

    private func list(_ method: String, _ caller: AgentCaller) async throws -> JSONObject {
        let list = try await proxy.catalog.list(method, of: id, for: caller)
        let hasChanged = method == CachedApp.tools ? await proxy.catalog.markToolsSeen(of: id) : false
        var result = list.result
        var meta = result["_meta"]?.object ?? [:]
        if let staleness = list.staleness {
            meta["patchbay/stale"] = true
            meta["patchbay/failure"] = .string(staleness.code)
        }
        if hasChanged { meta["patchbay/toolsChanged"] = true }
        result["_meta"] = meta.members.isEmpty ? nil : .object(meta)
        return result
    }
}

/// The descriptions of apps' servers.
struct DescriptionReader: Sendable {
    /// The timeout for asking an unknown app for its description, in seconds.
    private static let timeout = Duration.seconds(2)

    let pool: UpstreamPool
    let cache: AppCache
    let clock: any Clock<Duration>

    /// Returns the app's last known description. If there is none and the app is online, connects to the app now.
    func description(of id: EndpointID, for caller: AgentCaller) async -> ServerDescription {
        if await cache.record(of: id).info == nil { await fetchDescription(of: id, for: caller) }
        let record = await cache.record(of: id)
        guard let info = record.info else {
            return ServerDescription(
                info: ["name": .string(id.text), "version": "0"],
                capabilities: ["tools": ["listChanged": true]]
            )
        }
        var capabilities = record.capabilities
        if var tools = capabilities["tools"]?.object {
            // Always announced: the next launch may have other tools, and Patchbay checks for that.
            tools["listChanged"] = true
            capabilities["tools"] = .object(tools)
        }
        return ServerDescription(
            info: info,
            capabilities: capabilities,
            instructions: record.instructions
        )
    }

    private func fetchDescription(of id: EndpointID, for caller: AgentCaller) async {
        guard let endpoint = try? await pool.endpoint(id),
            let (session, access) = try? await pool.authorize(caller, to: endpoint),
            pool.beginDescriptionAttempt(of: id)
        else { return }
        _ = try? await withTimeout(Self.timeout, clock: clock) {
            try await session.connect(endpoint, by: access.routes)
        }
    }
}
