package import AccessControl
package import Model
import SystemIO

/// Handles requests at `/e/{id}/mcp`: the app's own tools, resources and prompts, also while the app restarts.
package struct AppRequestHandler: MCPRequestHandler {
    private let id: EndpointID
    private let proxy: AppProxy
    /// The prefix of tool names for a principal that sees the tools of several apps.
    private let alias: String?

    package init(_ id: EndpointID, proxy: AppProxy) { self.init(id, proxy: proxy, alias: nil) }

    init(_ id: EndpointID, proxy: AppProxy, alias: String?) {
        self.id = id
        self.proxy = proxy
        self.alias = alias
    }

    package func description(for principal: Principal) async -> HandlerDescription {
        await proxy.description(of: id, for: principal)
    }

    package func answer(_ request: MCPRequest, of principal: Principal) async throws(RPCError) -> JSONObject {
        do {
            guard SuspendedCalls.mayAsk(during: request) else { return try await handle(request, principal) }
            return try await proxy.suspendedCalls.run(request, at: id, of: principal) {
                try await handle($0, principal)
            }
        } catch let error as RPCError {
            throw error
        } catch {
            let failure = AppError(error)
            throw RPCError(-32_603, failure.message(for: .appAgent, at: id), data: ["failure": .string(failure.code)])
        }
    }

    private func handle(_ request: MCPRequest, _ principal: Principal) async throws -> JSONObject {
        switch request.method {
        case "tools/call": return try await recordedCall(request, principal)
        case let method where MCPRequest.listMembers[method] != nil:
            // The pages of the app's list are returned as one page.
            try request.rejectCursor()
            return try await list(method, principal)
        case "resources/subscribe": return try await subscribe(request, principal)
        default:
            return try await proxy.sender.send(request, at: id, for: principal).result()
        }
    }

    /// Subscribes to a resource. The subscription is recorded also if the app is not reachable, and begins when the app is
    /// back.
    private func subscribe(_ request: MCPRequest, _ principal: Principal) async throws -> JSONObject {
        let endpoint = try await proxy.pool.endpoint(id)
        let mayCall = principal.may(.endpointCall, on: endpoint) && proxy.pool.mayHaveTools(endpoint)
        let subscriptions = mayCall ? proxy.pool.session(to: endpoint).subscriptions : nil
        if let uri = request.params["uri"]?.string { subscriptions?.add(uri, for: principal.holder) }
        do {
            return try await proxy.sender.send(request, at: id, for: principal).result()
        } catch let error as RPCError {
            if let uri = request.params["uri"]?.string { subscriptions?.remove(uri, for: principal.holder) }
            throw error
        }
    }

    package func parameterHeaders(of tool: String, for principal: Principal) async -> ParameterHeaders {
        await proxy.catalog.parameterHeaders(of: tool, at: id, for: principal)
    }

    package func changes(for principal: Principal) -> AsyncStream<ServerChange> {
        proxy.changeMonitor.changes(of: id, for: principal)
    }

    package func changedLists(for principal: Principal) async -> Set<ServerChange> {
        await proxy.catalog.changedLists(of: id)
    }

    /// Calls a tool, and records the call in the activity.
    private func recordedCall(_ request: MCPRequest, _ principal: Principal) async throws -> JSONObject {
        guard let log = proxy.context.activity, let tool = request.tool else {
            return try await call(request, principal)
        }
        let arguments = request.withArgumentsAsObject.params["arguments"]?.object ?? [:]
        let running = log.begin(
            tool,
            arguments,
            at: id,
            for: principal,
            agent: request.agent,
            trace: request.trace.id
        )
        return try await log.record(running) { try await call(request, principal) }
    }

    /// Calls a tool. A failure is returned in the tool result, because models read results and not protocol errors.
    private func call(_ request: MCPRequest, _ principal: Principal) async throws -> JSONObject {
        guard let tool = request.tool else {
            throw RPCError.invalidParams("tools/call requires a name, a string")
        }
        do {
            // The client has its own timeout and cancels the request.
            return try await proxy.catalog.call(
                request.withArgumentsAsObject,
                at: id,
                for: principal,
                defaultTimeout: proxy.context.timeouts.response.total,
                alias: alias
            )
        } catch let failure as AppError {
            return failure.result(for: .appAgent, at: id)
        } catch let error as RPCError {
            guard error.isAboutNames,
                let near = await proxy.catalog.nearestTools(ifMissing: tool, at: id, for: principal, alias: alias),
                !near.isEmpty
            else { throw error }
            throw RPCError(error.code, "\(error.message)\(near)", data: error.data)
        }
    }

    private func list(_ method: String, _ principal: Principal) async throws -> JSONObject {
        let list = try await proxy.catalog.list(method, of: id, for: principal)
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
extension AppProxy {
    /// The timeout for asking an unknown app for its description.
    private static let descriptionTimeout = Duration.seconds(2)

    /// Returns the app's last known description. If there is none and the app is online, connects to the app now.
    func description(of id: EndpointID, for principal: Principal) async -> HandlerDescription {
        if await context.cache.record(of: id).info == nil { await fetchDescription(of: id, for: principal) }
        let record = await context.cache.record(of: id)
        guard var info = record.info else {
            return HandlerDescription(
                info: ["name": .string(id.text), "version": "0"],
                capabilities: ["tools": ["listChanged": true]]
            )
        }
        // MCP requires a version.
        info["version"] = info["version"] ?? "0"
        var capabilities = record.capabilities
        if var tools = capabilities["tools"]?.object {
            // Always announced: the next launch may have other tools, and Patchbay checks for that.
            tools["listChanged"] = true
            capabilities["tools"] = .object(tools)
        }
        return HandlerDescription(
            info: info,
            capabilities: capabilities,
            instructions: record.instructions
        )
    }

    private func fetchDescription(of id: EndpointID, for principal: Principal) async {
        guard let endpoint = try? await pool.endpoint(id),
            let (session, access) = try? await pool.authorize(principal, to: endpoint),
            pool.beginDescriptionAttempt(of: id)
        else { return }
        _ = try? await withTimeout(Self.descriptionTimeout, clock: context.clock) {
            try await session.connect(endpoint, by: access.routes)
        }
    }
}
