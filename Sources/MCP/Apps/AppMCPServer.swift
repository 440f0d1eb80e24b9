import AccessControl
package import JSON
package import Model
import Synchronization
import SystemIO

/// One app at an address of its own, `/e/{id}/mcp`: its own tools, resources and prompts, as it would answer itself, whether it
/// is here at the moment or on its way back.
package struct AppMCPServer: MCPServer {
    /// The longest edge of images here, where the caller cannot say: what models are given larger ones is scaled to anyway.
    private static let maxPixels = 1_568

    private let id: EndpointID
    private let desk: AppProxy
    /// What its tools' names begin with where the caller sees those of several apps.
    private let alias: String?

    package init(_ id: EndpointID, desk: AppProxy) { self.init(id, desk: desk, alias: nil) }

    init(_ id: EndpointID, desk: AppProxy, alias: String?) {
        self.id = id
        self.desk = desk
        self.alias = alias
    }

    package func description(for caller: AgentCaller) async -> ServerDescription {
        await desk.description(of: id, for: caller)
    }

    package func answer(_ request: MCPRequest, of caller: AgentCaller) async throws(RPCError) -> JSONObject {
        do {
            let asking = try await desk.interview(request, at: id, of: caller) { try await plainly($0, caller) }
            if let asking { return asking }
            return try await plainly(request, caller)
        } catch let error as RPCError {
            throw error
        } catch {
            let failure = AppProxy.failure(error, id)
            throw RPCError(-32_603, failure.sentence(for: .guest), data: ["failure": .string(failure.code)])
        }
    }

    /// Without looking at whether the app may ask.
    private func plainly(_ request: MCPRequest, _ caller: AgentCaller) async throws -> JSONObject {
        switch request.method {
        case "tools/call": return try await call(request, caller)
        case let method where AppProxy.members[method] != nil:
            // The app's pages come as one.
            try request.checkPage()
            return try await list(method, caller)
        default:
            return try await desk.reach(request, at: id, for: caller, wait: desk.limits.wait).outcome.get()
        }
    }

    package func parameterHeaders(of tool: String, for caller: AgentCaller) async -> ParameterHeaders {
        await desk.parameterHeaders(of: tool, at: id, for: caller)
    }

    package func changes(for caller: AgentCaller) -> AsyncStream<ServerChange> { desk.changes(of: id, for: caller) }

    /// What is wrong with an app that cannot be called is told where the model reads it: in the result.
    private func call(_ request: MCPRequest, _ caller: AgentCaller) async throws -> JSONObject {
        guard let tool = request.tool else {
            throw RPCError.invalidParams("tools/call must have the tool's name, a text")
        }
        do {
            let result = try await desk.call(
                // Who calls here has a limit of its own, and calls off what takes longer.
                request.withArgumentsAsObject.with(patience: desk.limits.longest),
                at: id,
                for: caller,
                wait: desk.limits.wait,
                maxPixels: Self.maxPixels
            )
            return await desk.hinted(result, tool, at: id, for: caller, alias: alias)
        } catch let failure as AppError {
            return failure.result(for: .guest)
        } catch let error as RPCError {
            guard error.isAboutNames, let near = await desk.absence(of: tool, at: id, for: caller, alias: alias),
                !near.isEmpty
            else { throw error }
            throw RPCError(error.code, "\(error.message)\(near)", data: error.data)
        }
    }

    private func list(_ method: String, _ caller: AgentCaller) async throws -> JSONObject {
        let list = try await desk.list(method, of: id, for: caller, within: desk.limits.list)
        let hasChanged = method == CachedApp.tools ? await desk.look(at: id) : false
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

/// What an app says about itself, and what changes about it.
extension AppProxy {
    /// How long an app is asked that was never heard, and how long it is left alone afterwards.
    private static let meetingLimit = Duration.seconds(2)
    private static let meetingPause = Duration.seconds(10)

    /// What the app said when it was met last. One that was never met is asked now, if it is here.
    func description(of id: EndpointID, for caller: AgentCaller) async -> ServerDescription {
        if await shelf.record(of: id).info == nil { await meet(id, for: caller) }
        let record = await shelf.record(of: id)
        guard let info = record.info else {
            return ServerDescription(
                info: ["name": .string(id.text), "version": "0"],
                capabilities: ["tools": ["listChanged": true]]
            )
        }
        var capabilities = record.capabilities
        if var tools = capabilities["tools"]?.object {
            // Whatever the app tells: its next launch may have others, and the broker looks.
            tools["listChanged"] = true
            capabilities["tools"] = .object(tools)
        }
        return ServerDescription(
            info: info,
            capabilities: capabilities,
            instructions: record.instructions
        )
    }

    private func meet(_ id: EndpointID, for caller: AgentCaller) async {
        guard let endpoint = try? await endpoint(id), let (line, clearance) = try? await admit(caller, to: endpoint)
        else {
            return
        }
        let isDue = entries.withLock { entries in
            let now = watch.elapsed
            if let last = entries[id]?.lastMeeting, now - last < Self.meetingPause { return false }
            entries[id]?.lastMeeting = now
            return true
        }
        guard isDue else { return }
        _ = try? await withDeadline(Self.meetingLimit, clock: clock) {
            try await line.meet(endpoint, by: clearance.passages)
        }
    }

    /// What changes about an app from now on.
    func changes(of id: EndpointID, for caller: AgentCaller) -> AsyncStream<ServerChange> {
        let changes = news.stream(of: id, keeping: 64) { _, change in change }
        // What is known of it may be from an earlier launch; whoever listens is told when that turns out.
        send(.list(id, for: caller))
        send(.listen(id, for: caller))
        return changes
    }

    /// The same for all apps that a caller sees: which one it was does not matter there.
    func changes(for caller: AgentCaller) -> AsyncStream<ServerChange> {
        news.stream(of: nil, keeping: 1) { [self] id, change in
            guard change == .tools else { return nil }
            let app = entries.withLock { $0[id]?.approvedApp }
            return caller.permissions?.selector.includes(id, approvedApp: app) ?? true ? .tools : nil
        }
    }
}
